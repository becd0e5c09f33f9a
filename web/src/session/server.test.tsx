// @vitest-environment node
import { Suspense } from "react";
import { renderToString } from "react-dom/server";
import { renderToReadableStream } from "react-dom/server.edge";
import { prerender } from "react-dom/static.edge";
import { expect, test, vi } from "vitest";
import {
  createSessionStore,
  RequireSession,
  SessionProvider,
  useExpiry,
  useSession,
  useSignOut,
} from "./index";

const fetch = vi.fn<typeof globalThis.fetch>();

function Name() {
  const { user, isLoading, error, lost } = useSession();
  const { secondsLeft } = useExpiry();
  useSignOut();
  return <p>{JSON.stringify([user, isLoading, error, lost, secondsLeft])}</p>;
}

const page = (
  <SessionProvider store={createSessionStore({ fetch })}>
    <Suspense fallback="later">
      <Name />
    </Suspense>
    <RequireSession loading={<p>loading</p>} failed={() => <p>failed</p>} signedOut={() => <p>signed out</p>}>
      <p>the page</p>
    </RequireSession>
  </SessionProvider>
);

const ways: [string, () => string | Promise<string>][] = [
  ["at once", () => renderToString(page)],
  ["streamed", async () => new Response(await renderToReadableStream(page)).text()],
  ["prerendered", async () => new Response((await prerender(page)).prelude).text()],
];

test.each(ways)(
  "a page that is rendered on a server (%s) says that nothing is known yet",
  async (_, render) => {
    const html = await render();
    expect(html).toContain("[null,true,null,null,null]");
    expect(html).toContain("<p>loading</p>");
    expect(html).not.toContain("the page");
    expect(fetch).not.toHaveBeenCalled();
  },
);

test("a page of a server shows no name, even if the store knows a user", async () => {
  const store = createSessionStore({ fetch: async () => Response.json({ sub: "ada" }) });
  await store.check();
  const html = renderToString(
    <SessionProvider store={store}>
      <Name />
    </SessionProvider>,
  );
  expect(html).toContain("[null,true,null,null,null]");
});
