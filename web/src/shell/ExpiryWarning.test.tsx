import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { currentSessionQuery } from "../api/queries";
import { SessionSchema } from "../gen/session/v1/session_pb";
import { SessionProvider } from "../session";
import { words } from "../words";
import { ExpiryWarning } from "./ExpiryWarning";

const say = words.expiry;

/** A page whose session has this many seconds until each of its two ends. */
function show(idleSeconds: number, lastSeconds: number) {
  const now = Date.now();
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  client.setQueryData(currentSessionQuery.queryKey, {
    session: create(SessionSchema, {
      expiresAt: timestampFromMs(now + idleSeconds * 1_000),
      absoluteExpiresAt: timestampFromMs(now + lastSeconds * 1_000),
    }),
    skewMs: 0,
    providerName: "",
  });
  render(
    <QueryClientProvider client={client}>
      <SessionProvider>
        <ExpiryWarning />
      </SessionProvider>
    </QueryClientProvider>,
  );
}
const dialog = () => screen.findByRole("alertdialog");

test("before the last end it says when to sign in again, and the way there has the focus", async () => {
  show(100, 100);
  expect((await dialog()).textContent).toContain(say.lastTitle);
  const again = screen.getByRole("link", { name: words.account.signInAgain });
  expect(again.getAttribute("href")).toMatch(/^\/api\/auth\/login\?returnTo=/);
  await waitFor(() => expect(document.activeElement).toBe(again));
  expect(screen.queryByRole("button", { name: say.stay })).toBeNull();
});

test("the last end is announced once: Escape closes it, on the next page too", async () => {
  show(90, 90);
  fireEvent.keyDown(await dialog(), { key: "Escape" });
  await waitFor(() => expect(screen.queryByRole("alertdialog")).toBeNull());
});

test("an end that use puts off wants an answer, also shortly before the last one", async () => {
  show(60, 100);
  const stay = await screen.findByRole("button", { name: say.stay });
  await waitFor(() => expect(document.activeElement).toBe(stay));
  fireEvent.keyDown(await dialog(), { key: "Escape" });
  expect(screen.getByRole("alertdialog").textContent).toContain(say.title);
});
