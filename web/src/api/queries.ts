/** The query options of the pages, and the timestamps of the responses as numbers. */

import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { queryOptions } from "@tanstack/react-query";
import type { Session } from "../gen/session/v1/session_pb";
import { getCurrentSession } from "./browser-session";
import { RpcFailure } from "./rpc-error";

/** Milliseconds since the Unix epoch; null if the message has no timestamp. */
export const msOf = (moment: Timestamp | undefined): number | null => (moment ? timestampMs(moment) : null);

export interface CurrentSession {
  session: Session;
  /** The server's clock minus the browser's. It keeps countdowns correct in a browser whose clock is wrong. */
  skewMs: number;
  /** The provider's display name; empty if no meaningful name is known. */
  providerName: string;
}

// The watch reports changes. Polling covers browsers that cannot keep the stream open.
const REREAD_MS = 30_000;
const REREAD_AFTER_FAILURE_MS = 5_000;

/** Retries transient errors twice, quickly; after that the polling interval retries. */
export const retryTransient = (failures: number, error: Error): boolean =>
  failures < 2 && error instanceof RpcFailure && error.transient;

/** The clock difference, from a response that has just arrived. */
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
