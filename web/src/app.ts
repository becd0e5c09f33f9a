/** The two objects that live as long as the page: the session store and the query cache. */
import { QueryCache, QueryClient } from "@tanstack/react-query";
import { heard } from "./analytics/project";
import { createSessionStore, type SessionStore } from "./session";

/** The effect of a failed query on the session, if its error says so. */
interface SessionRelated {
  transient?: boolean;
  missingSession?: boolean;
}

/**
 * Keeps the queries and the session in step. If a query loses the session or the server, the session is checked; that
 * check controls the banner and the retries. When the server is back, the queries are read again. Data that was read
 * for one person is never shown to another.
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
  let before = store.getSnapshot();
  store.subscribe(() => {
    const after = store.getSnapshot();
    if (before.user && after.user?.sub !== before.user.sub) client.clear();
    else if (before.error && !after.error && after.user) void client.invalidateQueries();
    before = after;
  });
  return client;
}

/** Reads a profile, and passes the analytics settings in its response on. */
async function fetchProfile(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  heard(response);
  return response;
}

export const sessionStore: SessionStore = createSessionStore({ fetch: fetchProfile });
export const queryClient: QueryClient = createQueryClient(sessionStore);
