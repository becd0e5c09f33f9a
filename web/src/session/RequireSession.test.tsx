import { render, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { down, ok, profileServer, signedOut } from "../testing/server";
import { createSessionStore, RequireSession, SessionProvider } from "./index";

function show(...answers: Parameters<typeof profileServer>) {
  const server = profileServer(...answers);
  const store = createSessionStore({ fetch: server.fetch });
  const navigate = vi.fn();
  const view = render(
    <SessionProvider store={store}>
      <RequireSession
        loading={<p>loading</p>}
        failed={(error) => <p>failed {error.status}</p>}
        signedOut={(how, signIn) => <a href={signIn}>signed out: {how}</a>}
        navigate={navigate}
      >
        <p>the page</p>
      </RequireSession>
    </SessionProvider>,
  );
  return { server, store, navigate, view };
}

test("shows its children to a signed-in user", async () => {
  const { navigate } = show(ok);
  expect(screen.getByText("loading")).toBeTruthy();
  await screen.findByText("the page");
  expect(navigate).not.toHaveBeenCalled();
});

test("sends a visitor to sign in once, with path, query and fragment", async () => {
  window.history.replaceState(null, "", "/account?a=1&b=%20x#part");
  const { navigate, store } = show(signedOut);
  await waitFor(() => expect(navigate).toHaveBeenCalledTimes(1));
  expect(navigate).toHaveBeenCalledWith(
    `/api/auth/login?returnTo=${encodeURIComponent("/account?a=1&b=%20x#part")}`,
  );
  await store.check();
  expect(navigate).toHaveBeenCalledTimes(1);
});

test("does not go round in circles when signing in gave no session", async () => {
  const first = show(signedOut);
  await waitFor(() => expect(first.navigate).toHaveBeenCalledTimes(1));
  first.view.unmount();
  const second = show(signedOut);
  await screen.findByText("signed out: not-signed-in");
  expect(second.navigate).not.toHaveBeenCalled();
});

test("shows a failure and never redirects for it", async () => {
  const { navigate } = show(down);
  await screen.findByText("failed 503");
  expect(navigate).not.toHaveBeenCalled();
});

test("keeps the page when a later check fails", async () => {
  const { server, store } = show(ok);
  await screen.findByText("the page");
  server.answer(down);
  await store.check();
  expect(screen.getByText("the page")).toBeTruthy();
});

test("says so when the session ended elsewhere, and does not redirect", async () => {
  const { server, store, navigate } = show(ok);
  await screen.findByText("the page");
  server.answer(signedOut);
  await store.check();
  await screen.findByText("signed out: ended");
  expect(navigate).not.toHaveBeenCalled();
});
