import {
  here,
  loginUrl,
  RequireSession,
  SessionProvider,
  useExpiry,
  useSession,
  useSignOut,
} from "@vestibule/session";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

/** The signed-in person's orders: an example of a page by another team. */
function Orders() {
  const { user, error, checkSession } = useSession();
  const { secondsLeft, isLast, stay } = useExpiry({ warnSeconds: 30 });
  const signOut = useSignOut();
  return (
    <main>
      <h1>Orders of {user?.name ?? user?.sub}</h1>
      {error && (
        <p role="status">
          Not connected.{" "}
          <button type="button" onClick={() => void checkSession()}>
            Try again
          </button>
        </p>
      )}
      {secondsLeft !== null && (
        <p role="alert">
          Signed out in {secondsLeft} seconds.{" "}
          {isLast ? (
            <a href={loginUrl(here())}>Sign in again</a>
          ) : (
            <button type="button" onClick={() => void stay()}>
              Stay
            </button>
          )}
        </p>
      )}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </main>
  );
}

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

createRoot(root).render(
  <StrictMode>
    <SessionProvider>
      <RequireSession
        loading={<p>One moment…</p>}
        failed={(failure, retry) => (
          <button type="button" onClick={() => void retry()}>
            Try again ({failure.status})
          </button>
        )}
        signedOut={(how, signIn) => (
          <p>
            Signed out: {how}. <a href={signIn}>Sign in</a>
          </p>
        )}
      >
        <Orders />
      </RequireSession>
    </SessionProvider>
  </StrictMode>,
);
