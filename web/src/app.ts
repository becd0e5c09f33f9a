/** The two things that live as long as the page: who is signed in, and what has been read. */
import { QueryCache, QueryClient } from "@tanstack/react-query";
import { heard } from "./analytics/project";
import { createSessionStore, type SessionStore } from "./session";

/** What a failed query tells about the session, if its error knows. */
interface SessionRelated {
  transient?: boolean;
  missingSession?: boolean;
}

/**
 * Keeps the queries and the session in step: a query that lost the session or the server has the session checked
 * (that check owns the banner and the retries), a server that is back has the queries read again, and what was
 * read for one person is never shown to another.
 */
export function createQueryClient(store: SessionStore): QueryClient {
  const client = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        const { transient, missingSession } = error as SessionRelated;
        if (transient || missingSession) void store.check();
      },
    }),
  });
  let before = store.getState();
  store.subscribe(() => {
    const after = store.getState();
    if (before.user && after.user?.sub !== before.user.sub) client.clear();
    else if (before.error && !after.error && after.user) void client.invalidateQueries();
    before = after;
  });
  return client;
}

/** Reads a profile, and on the way what its answer says about product analytics. */
async function fetchProfile(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  heard(response);
  return response;
}

export const sessionStore: SessionStore = createSessionStore({ fetch: fetchProfile });
export const queryClient: QueryClient = createQueryClient(sessionStore);
