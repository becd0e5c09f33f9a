"use client";

import { useCallback } from "react";
import { useSessionStore } from "./SessionProvider";
import { LOGOUT_PATH } from "./sign-in";

/** Signs out in this and every other tab at once, then at the edge, which ends its own and the provider's session. */
export function useSignOut(leave: (url: string) => void = toPage): () => void {
  const store = useSessionStore();
  return useCallback(() => {
    store.signingOut();
    leave(LOGOUT_PATH);
  }, [store, leave]);
}

const toPage = (url: string) => window.location.assign(url);
