/** The times of a session as points on a line. Pure, so that unit tests need no screen. */
import { msOf } from "../../api/queries";
import type { Session } from "../../gen/session/v1/session_pb";

export type MarkName = "started" | "bound" | "rolled" | "token" | "idle" | "absolute";

export interface Mark {
  name: MarkName;
  ms: number;
  /** Its position between the start and the latest possible end, 0 to 1. */
  at: number;
}

export interface Timeline {
  marks: Mark[];
  /** The position of the current time, 0 to 1. */
  now: number;
}

/** Returns null if the session has no start or no end. */
export function timelineOf(session: Session, nowMs: number): Timeline | null {
  const start = msOf(session.createdAt);
  const end = msOf(session.absoluteExpiresAt) ?? msOf(session.expiresAt);
  if (start === null || end === null || end <= start) return null;
  const place = (ms: number) => Math.min(1, Math.max(0, (ms - start) / (end - start)));
  const moments: [MarkName, number | null][] = [
    ["started", start],
    ["bound", msOf(session.deviceBinding?.boundAt)],
    ["rolled", msOf(session.rolledAt)],
    ["token", msOf(session.accessTokenExpiresAt)],
    ["idle", msOf(session.expiresAt)],
    ["absolute", end],
  ];
  const marks = moments
    .filter((moment): moment is [MarkName, number] => moment[1] !== null)
    .map(([name, ms]) => ({ name, ms, at: place(ms) }))
    .sort((a, b) => a.ms - b.ms);
  return { marks, now: place(nowMs) };
}
