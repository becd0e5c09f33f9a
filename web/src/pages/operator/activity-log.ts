/** What the live view shows, from the messages of the stream. Pure: unit tests need no screen. */
import { msOf } from "../../api/queries";
import type { Activity, SignInFailures } from "../../gen/session/v1/operator_session_service_pb";
import { type Cause, SessionEvent_Kind as Kind } from "../../gen/session/v1/session_pb";

/** The most rows: enough to read back, few enough for the browser. */
export const MOST_ROWS = 200;

export interface Row {
  /** Counts the rows since the page was opened. */
  number: number;
  atMs: number | null;
  what: "sign-in" | "ending" | "lost";
  /** Why the session ended. */
  cause: Cause;
  issuer: string;
  subject: string;
}

export interface Log {
  /** The newest first. */
  rows: readonly Row[];
  signIns: number;
  endings: number;
  /** How many rows there have been. */
  total: number;
  /** The latest message of each replica replaces the one before. */
  failures: SignInFailures | null;
}

export const EMPTY: Log = { rows: [], signIns: 0, endings: 0, total: 0, failures: null };

const SHOWN = new Map<Kind, Row["what"]>([
  [Kind.CREATED, "sign-in"],
  [Kind.ENDED, "ending"],
  [Kind.MISSED, "lost"],
]);

/** The log with one more message. Heartbeats and uses of a session change nothing. */
export function add(log: Log, { what: message }: Activity): Log {
  if (message.case === "failures") return { ...log, failures: message.value };
  const event = message.value;
  const what = event && SHOWN.get(event.kind);
  if (!event || !what) return log;
  const row: Row = {
    number: log.total + 1,
    atMs: msOf(event.at),
    what,
    cause: event.cause,
    issuer: event.issuer,
    subject: event.subject,
  };
  return {
    ...log,
    rows: [row, ...log.rows].slice(0, MOST_ROWS),
    signIns: log.signIns + Number(what === "sign-in"),
    endings: log.endings + Number(what === "ending"),
    total: row.number,
  };
}
