"use client";

import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from "react";
import type { SessionError, User } from "./profile";
import { createSessionStore, type Loss, type SessionStore, UNKNOWN } from "./store";

const StoreContext = createContext<SessionStore | null>(null);

/** Provides the session to all components below it. Use one per page; pass a `store` to share it with other code. */
export function SessionProvider({ store, children }: { store?: SessionStore; children: ReactNode }) {
  const [own] = useState(() => store ?? createSessionStore());
  // React 18 has no `<StoreContext value>`.
  return <StoreContext.Provider value={store ?? own}>{children}</StoreContext.Provider>;
}

/** The store behind the session, for what `useSession` does not offer. */
export function useSessionStore(): SessionStore {
  const store = useContext(StoreContext);
  if (!store) throw new Error("useSession needs a <SessionProvider> above it");
  return store;
}

export interface Session {
  /** The signed-in user; null before the check ends and after a sign-out (`isLoading`, `error`). */
  user: User | null;
  /** Why the last check failed; `user` then keeps its earlier value. */
  error: SessionError | null;
  /** True until the first check has finished. */
  isLoading: boolean;
  /** Set if this page had a signed-in person and has none now. */
  lost: Loss | null;
  /** Asks the server again. Never rejects. */
  checkSession: () => Promise<void>;
}

// A server renders without a user, and the browser hydrates with the same state.
const unknown = () => UNKNOWN;

/** The signed-in person. A server renders the loading state (`isLoading`); the browser checks after hydration. */
export function useSession(): Session {
  const store = useSessionStore();
  const { user, error, isLoading, lost } = useSyncExternalStore(store.subscribe, store.getSnapshot, unknown);
  return { user, error, isLoading, lost, checkSession: store.check };
}
