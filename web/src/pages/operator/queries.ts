/** The queries of the operators' pages. Each call is an audit record, so nothing is read again by itself. */
import { type InfiniteData, infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { listEndings, listProviders, searchSessions } from "../../api/operator";
import { retryTransient, skewOf } from "../../api/queries";
import { FAILED_PRECONDITION, RpcFailure, UNIMPLEMENTED } from "../../api/rpc-error";
import type { Session } from "../../gen/session/v1/session_pb";
import { markOperator } from "../../shell/operator-mark";
import { filterOf, type Search } from "./filter";

const ONLY_WHEN_ASKED = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
  retry: retryTransient,
} as const;

/** Why the service does not serve this operator. */
export type Refusal = "denied" | "again" | "off";

export function refusalOf(error: Error | null): Refusal | null {
  if (!(error instanceof RpcFailure)) return null;
  if (error.reason === "ERR_CALLER_NOT_ALLOWED") return "denied";
  if (error.code === FAILED_PRECONDITION) return "again";
  return error.code === UNIMPLEMENTED ? "off" : null;
}

/** The providers whose sessions this person may see. The answer also shows that the person is an operator. */
export const providersQuery = (subject: string) =>
  queryOptions({
    ...ONLY_WHEN_ASKED,
    queryKey: ["operator", "providers"],
    queryFn: async ({ signal }) => {
      try {
        const providers = await listProviders(signal);
        markOperator(subject);
        return providers;
      } catch (error) {
        if (refusalOf(error as Error)) markOperator(null);
        throw error;
      }
    },
  });

export interface FoundPage {
  sessions: Session[];
  nextPageToken: string;
  examined: number;
  skewMs: number;
}

/** A search without a match so far goes on for this long, then says how far it has come. */
const SEARCH_MS = 5_000;

/** The sessions of a search, a page at a time. The purpose belongs to the call and not to the result. */
export const foundQuery = (purpose: string, search: Search) =>
  infiniteQueryOptions({
    ...ONLY_WHEN_ASKED,
    queryKey: ["operator", "found", search],
    queryFn: async ({ pageParam, signal }): Promise<FoundPage> => {
      const until = Date.now() + SEARCH_MS;
      for (let token = pageParam, examined = 0; ; ) {
        const answer = await searchSessions(purpose, filterOf(search), token, signal);
        const { sessions, nextPageToken, examinedCount, serverTime } = answer;
        examined += examinedCount;
        token = nextPageToken;
        if (sessions.length === 0 && token && Date.now() < until) continue;
        return { sessions, nextPageToken, examined, skewMs: skewOf(serverTime, Date.now()) };
      }
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.nextPageToken || undefined,
  });

/** The sessions of all pages, and how many the service has examined. */
export function foundOf(data: InfiniteData<FoundPage>) {
  const sessions = data.pages.flatMap((page) => page.sessions);
  return {
    // A session that appears on two pages counts once.
    sessions: [...new Map(sessions.map((session) => [session.handle, session])).values()],
    examined: data.pages.reduce((sum, page) => sum + page.examined, 0),
    skewMs: data.pages.at(-1)?.skewMs ?? 0,
  };
}

/** The recent endings of a person's sessions. */
export const endingsQuery = (purpose: string, issuer: string, subject: string) =>
  queryOptions({
    ...ONLY_WHEN_ASKED,
    queryKey: ["operator", "endings", issuer, subject],
    queryFn: ({ signal }) => listEndings(purpose, issuer, subject, signal),
  });
