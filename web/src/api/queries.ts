/** What the pages ask for, as query options, and the moments in it as numbers. */

import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { queryOptions } from "@tanstack/react-query";
import type { Session } from "../gen/session/v1/session_pb";
import { getCurrentSession } from "./browser-session";
import { RpcFailure } from "./rpc-error";

/** Milliseconds since the Unix epoch; null when the message leaves the moment out. */
export const msOf = (moment: Timestamp | undefined): number | null => (moment ? timestampMs(moment) : null);

export interface CurrentSession {
  session: Session;
  /** The server's clock minus the browser's: what makes a countdown right in a browser whose clock is wrong. */
  skewMs: number;
  /** What people call the provider; empty where nothing is known that would tell them anything. */
  providerName: string;
}

// The watch tells of changes; asking every so often covers a stream that cannot be had.
const REREAD_MS = 30_000;
const REREAD_AFTER_FAILURE_MS = 5_000;

/** Retries what may pass by itself, twice, quickly; the interval goes on after that. */
export const retryTransient = (failures: number, error: Error): boolean =>
  failures < 2 && error instanceof RpcFailure && error.transient;

/** The difference of the clocks, from an answer that came just now. */
export function skewOf(serverTime: Timestamp | undefined, receivedAtMs: number): number {
  const server = msOf(serverTime);
  return server === null ? 0 : server - receivedAtMs;
}

/** This browser's session, read without extending it. */
export const currentSessionQuery = queryOptions({
  queryKey: ["session", "current"],
  queryFn: async ({ signal }): Promise<CurrentSession> => {
    const { session, serverTime, providerName } = await getCurrentSession(signal);
    if (!session) throw new RpcFailure(2, "", null, "the answer holds no session");
    return { session, skewMs: skewOf(serverTime, Date.now()), providerName };
  },
  staleTime: 5_000,
  retry: retryTransient,
  refetchInterval: ({ state }) => (state.error ? REREAD_AFTER_FAILURE_MS : REREAD_MS),
});
