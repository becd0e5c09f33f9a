// Back, Forward and Reload around sign-in and sign-out: no request repeats, and no private data reappears.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import {
  assertQuiet,
  browserTests,
  openWindow,
  signIn,
  signInAtProvider,
  startBrowser,
  until,
} from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

// The edge on another site than the provider, as in production.
const apart = () => start({ host: "localhost" });
const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
// The browser records the status of each page.
const REFUSED = /status of 400/;

/** Collects the callback requests of the context's pages. */
function callbacks(context) {
  const asked = [];
  context.on("request", (request) => {
    if (new URL(request.url()).pathname === "/api/auth/callback") asked.push(request.url());
  });
  return asked;
}

const me = async (context, stack) => (await context.request.get(`${stack.edgeUrl}/api/auth/me`)).status();

test("Back after signing in leads to the page before, still signed in, and redeems nothing twice", async () => {
  const stack = await apart();
  const { context, page } = await window(stack);
  await signIn(page, stack);
  // The provider now knows this browser: the next sign-in shows no provider page.
  await page.goto("/");
  await page.getByText("You are signed in.").waitFor();
  const asked = callbacks(context);
  await page.goto("/api/auth/login?returnTo=/account/session");
  await h1(page, "This session");
  assert.equal(asked.length, 1);
  await page.goBack();
  await page.getByText("You are signed in.").waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
  await page.goForward();
  await h1(page, "This session");
  await page.reload();
  await h1(page, "This session");
  assert.equal(asked.length, 1, "no callback was repeated");
  assert.equal(await me(context, stack), 200);
});

test("Back over the provider's page comes to our own page before it, which knows who is signed in", async () => {
  const stack = await apart();
  const { context, page, expects } = await window(stack);
  expects(REFUSED);
  await signIn(page, stack);
  const asked = callbacks(context);
  await page.goBack();
  assert.ok(page.url().startsWith(stack.issuer), page.url());
  const wayOn = page.getByRole("link", { name: "Go back to the application" });
  assert.equal(await wayOn.getAttribute("href"), `${stack.edgeUrl}/`);
  await page.goBack();
  assert.equal(page.url(), `${stack.edgeUrl}/`);
  await page.getByText("You are signed in.").waitFor();
  assert.deepEqual(asked, []);
});

test("the callback's address opened again leads a person on who is signed in, also after a reload", async () => {
  const stack = await apart();
  const { context, page } = await window(stack);
  const asked = callbacks(context);
  await signIn(page, stack);
  assert.equal(asked.length, 1);
  for (let turn = 0; turn < 2; turn += 1) {
    const answer = await page.goto(asked[0]);
    assert.equal(answer.status(), 200);
    assert.notEqual(new URL(page.url()).pathname, "/api/auth/callback");
    assert.equal((await page.reload()).status(), 200);
    assert.equal(await me(context, stack), 200);
  }
});

test("a sign-in cancelled at the provider says so, also when the page is loaded again, and can be tried again", async () => {
  const stack = await apart();
  const { context, page, expects } = await window(stack);
  expects(REFUSED);
  await page.goto("/account/session?n=1");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("You cancelled the sign-in").waitFor();
  const tryAgain = page.getByRole("link", { name: "Try again" });
  const way = await tryAgain.getAttribute("href");
  assert.equal((await page.reload()).status(), 400);
  await page.getByText("it is already complete").waitFor();
  assert.equal(await me(context, stack), 204);
  // Continue at the address that the page linked to before the reload.
  await page.goto(way);
  await signInAtProvider(page, stack);
  await h1(page, "This session");
  assert.equal(page.url(), `${stack.edgeUrl}/account/session?n=1`);
});

/** Goes back to a page of ours with this path, or to the provider's sign-in page in front of it. */
async function backTo(page, stack, path) {
  for (let steps = 0; steps < 8; steps += 1) {
    const from = await page.evaluate(() => performance.timeOrigin);
    await page.evaluate(() => history.back());
    const moved = () => page.evaluate(() => performance.timeOrigin).catch(() => from);
    await until(async () => (await moved()) !== from, "the page before is there");
    await page.waitForLoadState();
    if (new URL(page.url()).pathname === path) return;
    if (page.url().startsWith(stack.issuer) && (await page.getByLabel("Password").count()) > 0) return;
  }
  throw new Error(`no page before this one is ${path}`);
}

test("Back after signing out shows nothing private, in a browser that keeps pages it has left", async (t) => {
  const stack = await apart();
  const browser = await startBrowser({ backForwardCache: true });
  t.after(() => browser.close());
  const { context, page, seen } = await openWindow(browser, stack);
  const [{ email, name }] = stack.accounts;
  const shown = [];
  await context.exposeBinding("privateTextShown", (_from, where) => shown.push(where));
  await context.addInitScript(
    ({ edgeUrl, secrets }) => {
      if (location.origin !== edgeUrl) return;
      const look = () => {
        const text = document.body?.innerText ?? "";
        if (secrets.some((secret) => text.includes(secret))) globalThis.privateTextShown(location.pathname);
      };
      new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
      addEventListener("pageshow", look);
    },
    { edgeUrl: stack.edgeUrl, secrets: [email, name] },
  );
  await signIn(page, stack);
  await page.goto("/account/session");
  await page.getByText("What you have allowed").waitFor();
  await page.goto("/account");
  await page.getByText(email, { exact: true }).waitFor();
  await until(() => shown.length > 0, "the observer sees the profile");
  await page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
  await h1(page, "You are signed out.");
  shown.splice(0);
  await backTo(page, stack, "/account");
  await page.waitForURL((url) => url.href.startsWith(stack.issuer));
  await page.getByLabel("Password").waitFor();
  assert.deepEqual(shown, [], "what was private came back");
  assert.equal(await me(context, stack), 204);
  assertQuiet(seen);
});

test("after signing out in one tab the other says so, and a protected page there asks to sign in", async () => {
  const stack = await apart();
  const { context, page } = await window(stack);
  await signIn(page, stack);
  const other = await context.newPage();
  await other.goto("/account/sessions");
  await other.getByText("This browser").waitFor();
  await page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
  await h1(other, "You are signed out.");
  assert.equal(new URL(other.url()).pathname, "/signed-out");
  await h1(page, "You are signed out.");
  await other.goto("/account/sessions");
  await other.waitForURL((url) => url.href.startsWith(stack.issuer));
  await signInAtProvider(other, stack);
  await h1(other, "Your sessions");
});
