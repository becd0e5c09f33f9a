// The provider posts its response from another site: it works only with the headers that browsers really send.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import { browserTests, signIn, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const posted = (tls) => start({ host: "localhost", tls, edgeEnv: { OIDC_RESPONSE_MODE: "form_post" } });

/** The callback requests of a context, each with the headers that the browser really sent. */
function callbacks(context) {
  const seen = [];
  context.on("request", (request) => {
    if (new URL(request.url()).pathname === "/api/auth/callback")
      seen.push(request.allHeaders().then((headers) => ({ method: request.method(), headers })));
  });
  return () => Promise.all(seen);
}

async function signsInByPost(tls) {
  const stack = await posted(tls);
  const { context, page } = await window(stack, { ignoreHTTPSErrors: true });
  const sent = callbacks(context);
  await page.goto("/account/session?n=1");
  const [pending] = await context.cookies(stack.edgeUrl);
  assert.deepEqual([pending.sameSite, pending.secure], ["None", true]);
  await signInAtProvider(page, stack);
  await h1(page, "This session");
  assert.equal(page.url(), `${stack.edgeUrl}/account/session?n=1`);
  const [callback, ...more] = await sent();
  assert.equal(more.length, 0);
  assert.equal(callback.method, "POST");
  assert.equal(callback.headers["sec-fetch-site"], "cross-site", "the provider is another site");
  assert.match(callback.headers.cookie, new RegExp(`^${pending.name}=[^;]+$`), "that cookie and no other");
  await page.reload();
  await h1(page, "This session");
  assert.equal((await sent()).length, 1, "a reload posts nothing again");
  const cookies = await context.cookies(stack.edgeUrl);
  assert.deepEqual(
    cookies.map(({ sameSite }) => sameSite),
    ["Lax"],
    "the session's cookie stays Lax",
  );
}

// conformance: A-023
test("an answer posted from the provider's site signs in over TLS", () => signsInByPost(true));

test("an answer posted from the provider's site signs in on http://localhost, which browsers trust like TLS", () =>
  signsInByPost(false));

test("signing in again by a posted answer ends the session the browser had", async () => {
  const stack = await posted(true);
  const { context, page } = await window(stack, { ignoreHTTPSErrors: true });
  await signIn(page, stack);
  const [old] = await context.cookies(stack.edgeUrl);
  await page.goto("/api/auth/login?returnTo=/account/session");
  await h1(page, "This session");
  const [now] = await context.cookies(stack.edgeUrl);
  assert.notEqual(now.value, old.value);
  const stranger = await window(stack, { ignoreHTTPSErrors: true });
  await stranger.context.addCookies([old]);
  const asked = await stranger.context.request.get(`${stack.edgeUrl}/api/auth/me`);
  assert.equal(asked.status(), 204, "the session before is over");
});

test("two tabs finish by posted answers in either order", async () => {
  const stack = await posted(true);
  const { context, page } = await window(stack, { ignoreHTTPSErrors: true });
  const other = await context.newPage();
  await page.goto("/account?tab=1");
  await other.goto("/account?tab=2");
  for (const [tab, number] of [
    [other, 2],
    [page, 1],
  ]) {
    await signInAtProvider(tab, stack);
    await h1(tab, "Profile");
    assert.equal(tab.url(), `${stack.edgeUrl}/account?tab=${number}`);
  }
});

test("a posted answer also reports a sign-in cancelled at the provider", async () => {
  const stack = await posted(true);
  const { page, expects } = await window(stack, { ignoreHTTPSErrors: true });
  expects(/status of 400/);
  await page.goto("/account/session");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("You cancelled the sign-in").waitFor();
  await page.getByRole("link", { name: "Try again" }).click();
  await signInAtProvider(page, stack);
  await h1(page, "This session");
});
