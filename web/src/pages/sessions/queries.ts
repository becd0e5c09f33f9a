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

/** When a session was last used, as far as it tells. */
export const lastSeenMs = (session: Session): number =>
  msOf(session.lastSeenOn?.at) ?? msOf(session.rolledAt) ?? msOf(session.createdAt) ?? 0;

/** The session of this browser first, then by last use; a session on two pages counts once. */
export function inOrder(data: InfiniteData<SessionsPage>): Session[] {
  const all = new Map(
    data.pages.flatMap((page) => page.sessions).map((session) => [session.handle, session]),
  );
  return [...all.values()].sort(
    (a, b) =>
      Number(b.current) - Number(a.current) ||
      lastSeenMs(b) - lastSeenMs(a) ||
      a.handle.localeCompare(b.handle),
  );
}

/** The list without some sessions: what it looks like before the server has said so. */
export function without(
  data: InfiniteData<SessionsPage>,
  gone: (session: Session) => boolean,
): InfiniteData<SessionsPage> {
  const pages = data.pages.map((page) => ({
    ...page,
    sessions: page.sessions.filter((session) => !gone(session)),
  }));
  return { ...data, pages };
}
