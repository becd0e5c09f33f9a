"use client";

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { SessionError } from "./profile";
import { useSession } from "./SessionProvider";
import { here, loginUrl, maySendToSignIn, signInWorked } from "./sign-in";
import type { Loss } from "./store";

export interface RequireSessionProps {
  children: ReactNode;
  /** Shown while the session check runs, and while the browser leaves for the sign-in. */
  loading: ReactNode;
  /** Shown if the session check fails; a failed check never redirects. */
  failed: (error: SessionError, retry: () => Promise<void>) => ReactNode;
  /** Shown if this page's session is over, or if a sign-in returned without a session: the person decides. */
  signedOut: (how: Loss | "not-signed-in", signIn: string) => ReactNode;
  /** Navigates to another page; replaced in tests. */
  navigate?: (url: string) => void;
}

const leave = (url: string) => window.location.assign(url);

/**
 * Shows its children to a signed-in person. Sends a visitor to the sign-in once, with path, query and fragment to
 * return to. The server guards the page as well; this component covers navigation inside the app.
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
