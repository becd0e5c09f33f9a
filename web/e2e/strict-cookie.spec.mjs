// A strict session cookie: browsers omit it on requests that other sites cause, the provider's redirect included.
import assert from "node:assert/strict";
import http from "node:http";
import { test as runTest } from "node:test";
import { browserTests, signIn, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const ways = {
  query: () => start({ host: "localhost", edgeEnv: { EDGE_COOKIE_SAME_SITE: "strict" } }),
  form_post: () =>
    start({
      host: "localhost",
      edgeEnv: { EDGE_COOKIE_SAME_SITE: "strict", OIDC_RESPONSE_MODE: "form_post" },
    }),
};

for (const [mode, strict] of Object.entries(ways)) {
  test(`a person signs in at a provider on another site and lands on the guarded page asked for (${mode})`, async () => {
    const stack = await strict();
    const { context, page } = await window(stack);
    await page.goto("/account/session?n=1");
    await signInAtProvider(page, stack);
    await h1(page, "This session");
    assert.equal(page.url(), `${stack.edgeUrl}/account/session?n=1`);
    const [session, ...more] = await context.cookies(stack.edgeUrl);
    assert.deepEqual([session.name, session.sameSite, more.length], ["session", "Strict", 0]);
    // The redirecting page is not in the history: Back goes to the provider's page, not into a loop.
    await page.goto("/");
    await page.getByText("You are signed in.").waitFor();
    await page.goBack();
    await h1(page, "This session");
  });
}

test("a link on another site leads to a guarded page in one new session, which replaces the old one", async (t) => {
  const stack = await ways.query();
  const other = http.createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><title>Other</title><a href="${stack.edgeUrl}/account/session">there</a>`);
  });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.after(() => other.close());
  const { context, page, expects } = await window(stack);
  const otherUrl = `http://127.0.0.1:${other.address().port}`;
  expects(new RegExp(`foreign request: ${otherUrl}`), /status of 404/);
  await signIn(page, stack);
  const [before] = await context.cookies(stack.edgeUrl);
  await page.goto(otherUrl);
  await page.getByRole("link", { name: "there" }).click();
  await h1(page, "This session");
  const [now] = await context.cookies(stack.edgeUrl);
  assert.notEqual(now.value, before.value);
  const asked = await fetch(`${stack.edgeUrl}/api/auth/me`, {
    headers: { cookie: `session=${before.value}` },
  });
  assert.equal(asked.status, 204);
});
