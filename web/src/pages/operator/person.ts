/** What an operator sees of the person of a session. */
import type { Provider } from "../../api/operator";
import { msOf } from "../../api/queries";
import { Cause, type Device, type Session } from "../../gen/session/v1/session_pb";
import type { User } from "../../session";
import { displayName, emailOf } from "../../user";
import { wordFor } from "../../words";
import { operatorWords } from "../../words/operator";

export interface Props {
  providers: readonly Provider[];
  /** The operator ("sub"). */
  operator: string;
}

/** The claims of a session; the subject alone if the session cannot be read. */
export function claimsOf(session: Session): User {
  try {
    const claims: unknown = JSON.parse(session.user);
    if (typeof claims === "object" && claims !== null) return { ...claims, sub: session.subject };
  } catch {
    // An unreadable session has no claims.
  }
  return { sub: session.subject };
}

/** The person in a row: the name, if there is one, and what else identifies the person. */
export function personOf(session: Session): { name: string; detail: string } {
  const claims = claimsOf(session);
  const name = displayName(claims);
  const email = emailOf(claims) ?? "";
  return {
    name,
    detail: email !== "" && email !== name ? email : name === session.subject ? "" : session.subject,
  };
}

// The page's heading and its facts show these.
const SHOWN_ELSEWHERE = new Set(["sub", "name", "email", "picture"]);

/** The other claims in the order of the service, as text. */
export const otherClaimsOf = (session: Session): [name: string, value: string][] =>
  Object.entries(claimsOf(session))
    .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
    .map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);

export const lastDeviceOf = (session: Session): Device | undefined => session.lastSeenOn ?? session.createdOn;

/** When the session was last used. */
export const lastUseOf = (session: Session): number | null =>
  msOf(session.lastSeenOn?.at) ?? msOf(session.rolledAt) ?? msOf(session.createdAt);

export const causeInWords = (cause: Cause): string =>
  wordFor(operatorWords.causes, Cause[cause]?.toLowerCase() ?? "") ?? operatorWords.causes.other;

/** The name of a provider for people; its issuer if it has none. */
export const providerName = (providers: readonly Provider[], issuer: string): string =>
  providers.find((provider) => provider.issuer === issuer)?.name || issuer;
