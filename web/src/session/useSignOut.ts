"use client";

import { useCallback } from "react";
import { useSessionStore } from "./SessionProvider";
import { signOut } from "./sign-in";

/** Returns `signOut` for the store of this page. */
export function useSignOut(navigate?: (url: string) => void): () => void {
  const store = useSessionStore();
  return useCallback(() => signOut(store, navigate), [store, navigate]);
}
