"use client";

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { SessionError } from "./profile";
import { useSession } from "./SessionProvider";
import { here, loginUrl, maySendToSignIn, signInWorked } from "./sign-in";
import type { Loss } from "./store";

export interface RequireSessionProps {
  children: ReactNode;
  /** While it is not known yet whether somebody is signed in, and while leaving for the sign-in. */
  loading: ReactNode;
  /** When it could not be found out; never a redirect. */
  failed: (error: SessionError, retry: () => Promise<void>) => ReactNode;
  /** When the session of this page is over, or a sign-in came back without one: the person decides. */
  signedOut: (how: Loss | "not-signed-in", signIn: string) => ReactNode;
  /** Goes to another page; replaced in tests. */
  navigate?: (url: string) => void;
}

const leave = (url: string) => window.location.assign(url);

/**
 * Shows its children to somebody who is signed in. A visitor is sent to sign in, once, with path, query and
 * fragment to come back to. The server guards the page as well: this is for moving about inside the app.
 */
export function RequireSession({
  children,
  loading,
  failed,
  signedOut,
  navigate = leave,
}: RequireSessionProps) {
  const { user, error, isLoading, lost, checkSession } = useSession();
  const visitor = !isLoading && !user && !error && !lost;
  const [stopped, setStopped] = useState(false);
  const decided = useRef(false);

  useEffect(() => {
    if (user) signInWorked();
  }, [user]);

  useEffect(() => {
    if (!visitor || decided.current) return;
    decided.current = true;
    if (maySendToSignIn(Date.now())) navigate(loginUrl(here()));
    else setStopped(true);
  }, [visitor, navigate]);

  if (user) return children;
  if (isLoading) return loading;
  if (error) return failed(error, checkSession);
  if (lost) return signedOut(lost, loginUrl(here()));
  return stopped ? signedOut("not-signed-in", loginUrl(here())) : loading;
}
