"use client";

import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from "react";
import type { SessionError, User } from "./profile";
import { createSessionStore, type Loss, type SessionStore, UNKNOWN } from "./store";

const StoreContext = createContext<SessionStore | null>(null);

/** Makes the session known to everything below it. One per page; give it a `store` to share one with other code. */
export function SessionProvider({ store, children }: { store?: SessionStore; children: ReactNode }) {
  const [own] = useState(() => store ?? createSessionStore());
  return <StoreContext value={store ?? own}>{children}</StoreContext>;
}

/** The store behind the session, for what `useSession` does not do. */
export function useSessionStore(): SessionStore {
  const store = useContext(StoreContext);
  if (!store) throw new Error("useSession needs a <SessionProvider> above it");
  return store;
}

export interface Session {
  /** Who is signed in; null when nobody is, or when it is not known yet (`isLoading`, `error`). */
  user: User | null;
  /** Why the last check failed; the user is then the one known before. */
  error: SessionError | null;
  /** True until it is known whether somebody is signed in. */
  isLoading: boolean;
  /** Set when somebody was signed in on this page and is not any more. */
  lost: Loss | null;
  /** Asks the server again. Never rejects. */
  checkSession: () => Promise<void>;
}

// A server renders for nobody in particular, and a browser hydrates with the same state.
const unknown = () => UNKNOWN;

/** Who is signed in. A server renders "not known yet" (`isLoading`); the browser asks once the page is there. */
export function useSession(): Session {
  const store = useSessionStore();
  const { user, error, isLoading, lost } = useSyncExternalStore(store.subscribe, store.getState, unknown);
  return { user, error, isLoading, lost, checkSession: store.check };
}
