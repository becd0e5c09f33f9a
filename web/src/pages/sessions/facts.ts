/** Finds the facts that differ between sessions and those that all share. Pure: unit tests need no screen. */
import { msOf } from "../../api/queries";
import { describeDevice } from "../../device";
import { type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { words } from "../../words";
import { describe } from "../../words/devices";
import { preciselyAt } from "../../words/times";

const say = words.sessions;

/** Where a session runs; unknown values are empty. */
export interface Facts {
  browser: string;
  system: string;
  address: string;
}

const NOTHING: Facts = { browser: "", system: "", address: "" };
const NAMES = ["browser", "system", "address"] as const;

export const deviceOf = (session: Session) => session.lastSeenOn ?? session.createdOn;

function factsOf(session: Session): Facts {
  const device = deviceOf(session);
  return { ...NOTHING, ...describeDevice(device?.userAgent ?? ""), address: device?.address ?? "" };
}

/** The name of a session's device, in messages. */
export function nameOf(session: Session): string {
  if (session.state === State.UNREADABLE) return say.unreadable;
  return describe(factsOf(session)) || say.unknownBrowser;
}

/** The facts that all sessions have in common; the page shows them once, above the list. */
export function sharedFacts(sessions: readonly Session[]): Facts {
  const [first = NOTHING, ...others] = sessions.map(factsOf);
  if (others.length === 0) return NOTHING;
  const shared = { ...first };
  for (const name of NAMES) if (others.some((facts) => facts[name] !== first[name])) shared[name] = "";
  return shared;
}

/** The shared facts in words; empty if no fact is shared. */
export const saySharedFacts = (shared: Facts): string =>
  [describe(shared), shared.address].filter(Boolean).join("\u00a0· ");

/** The facts that remain for the row of one session; the device is empty if all of it is shared. */
export function ownFacts(session: Session, shared: Facts): { device: string; address: string } {
  const own = factsOf(session);
  for (const name of NAMES) if (shared[name]) own[name] = "";
  const isShared = shared.browser !== "" || shared.system !== "";
  return { device: isShared ? describe(own) : nameOf(session), address: own.address };
}

/** The accessible name of each session, by handle: device and start, plus a number if both are equal. */
export function labelsOf(sessions: readonly Session[]): Map<string, string> {
  const uses = new Map<string, number>();
  const labels = new Map<string, string>();
  for (const session of sessions) {
    const startMs = msOf(session.createdAt);
    const name = nameOf(session);
    const label = startMs === null ? name : say.label(name, preciselyAt(startMs));
    const use = (uses.get(label) ?? 0) + 1;
    uses.set(label, use);
    labels.set(session.handle, use === 1 ? label : `${label} (${use})`);
  }
  return labels;
}
