"use client";

import { useSession, useSignOut } from "@vestibule/session";

/** The server renders "One moment…" for all visitors, and the browser then asks who is signed in. */
export function Orders({ signIn }) {
  const { user, error, isLoading } = useSession();
  const signOut = useSignOut();
  if (isLoading) return <p>One moment…</p>;
  if (error && !user) return <p role="status">Not connected.</p>;
  if (!user) return <a href={signIn}>Sign in</a>;
  return (
    <>
      <p>Orders of {user.name ?? user.sub}</p>
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </>
  );
}
