import { type InfiniteData, infiniteQueryOptions } from "@tanstack/react-query";
import { listMySessions } from "../../api/browser-session";
import { msOf, retryTransient, skewOf } from "../../api/queries";
import type { Session } from "../../gen/session/v1/session_pb";

export interface SessionsPage {
  sessions: Session[];
  nextPageToken: string;
  skewMs: number;
}

const REREAD_AFTER_FAILURE_MS = 5_000;

/** All sessions of this person, a page at a time. */
export const sessionsQuery = infiniteQueryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ pageParam, signal }): Promise<SessionsPage> => {
    const { sessions, nextPageToken, serverTime } = await listMySessions(pageParam, signal);
    return { sessions, nextPageToken, skewMs: skewOf(serverTime, Date.now()) };
  },
  initialPageParam: "",
  getNextPageParam: (page) => page.nextPageToken || undefined,
  retry: retryTransient,
  refetchInterval: ({ state }) => (state.error ? REREAD_AFTER_FAILURE_MS : false),
});

/** The time of last use, if the session has one. */
export const lastSeenMs = (session: Session): number =>
  msOf(session.lastSeenOn?.at) ?? msOf(session.rolledAt) ?? msOf(session.createdAt) ?? 0;

/** The sessions of all loaded pages; a session that appears on two pages counts once. */
export const allOf = (data: InfiniteData<SessionsPage>): Session[] => [
  ...new Map(
    data.pages.flatMap(({ sessions }) => sessions).map((session) => [session.handle, session]),
  ).values(),
];

/** The session of this browser first, then by last use. */
export const inOrder = (sessions: readonly Session[]): Session[] =>
  [...sessions].sort(
    (a, b) =>
      Number(b.current) - Number(a.current) ||
      lastSeenMs(b) - lastSeenMs(a) ||
      a.handle.localeCompare(b.handle),
  );
