/** A search, its address in the browser, and its filter for the service. Pure: unit tests need no screen. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Filter } from "../../api/operator";
import { paths } from "../../paths";

export const operatorPaths = {
  search: paths.operator,
  person: `${paths.operator}/person`,
  activity: `${paths.operator}/activity`,
} as const;

export const KINDS = ["email", "name", "subject", "handle", "address", "provider_sid", "everyone"] as const;
export type Kind = (typeof KINDS)[number];

export interface Search {
  issuer: string;
  kind: Kind;
  /** Empty for everyone. */
  value: string;
  /** Only sessions that began at this time or later; milliseconds since the Unix epoch. */
  afterMs: number | null;
  /** Only sessions that began before this time. */
  beforeMs: number | null;
}

const isKind = (kind: string | null): kind is Kind => KINDS.includes(kind as Kind);

/** The provider that an address names; the first if it names none. Undefined if the operator may not see it. */
export function issuerOf(params: URLSearchParams, issuers: readonly string[]): string | undefined {
  const wanted = params.get("provider");
  return wanted === null ? issuers[0] : issuers.find((issuer) => issuer === wanted);
}

/** The search of an address; null if the address is that of the empty form, or malformed. */
export function searchOf(params: URLSearchParams, issuers: readonly string[]): Search | null {
  const issuer = issuerOf(params, issuers);
  const kind = params.get("by");
  const value = params.get("value")?.trim() ?? "";
  if (!issuer || !isKind(kind) || (value === "" && kind !== "everyone")) return null;
  return {
    issuer,
    kind,
    value: kind === "everyone" ? "" : value,
    afterMs: momentOf(params.get("after")),
    beforeMs: momentOf(params.get("before")),
  };
}

function momentOf(text: string | null): number | null {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? null : ms;
}

/** The address of a search. It names the provider always, so that it means the same to every operator. */
export function addressOf({ issuer, kind, value, afterMs, beforeMs }: Search): string {
  const params = new URLSearchParams({ provider: issuer, by: kind });
  if (kind !== "everyone") params.set("value", value);
  if (afterMs !== null) params.set("after", new Date(afterMs).toISOString());
  if (beforeMs !== null) params.set("before", new Date(beforeMs).toISOString());
  return `${paths.operator}?${params}`;
}

/** The address of a person's page. */
export const personAddress = (issuer: string, subject: string): string =>
  `${operatorPaths.person}?${new URLSearchParams({ provider: issuer, subject })}`;

/** The filter of a search. */
export function filterOf({ issuer, kind, value, afterMs, beforeMs }: Search): Filter {
  return {
    issuer,
    by:
      kind === "everyone"
        ? { case: "everyone", value: true }
        : { case: kind === "provider_sid" ? "providerSid" : kind, value },
    ...(afterMs !== null && { createdAfter: timestampFromMs(afterMs) }),
    ...(beforeMs !== null && { createdBefore: timestampFromMs(beforeMs) }),
  };
}

/** The search for all sessions of a person. */
export const ofPerson = (issuer: string, subject: string): Search => ({
  issuer,
  kind: "subject",
  value: subject,
  afterMs: null,
  beforeMs: null,
});
