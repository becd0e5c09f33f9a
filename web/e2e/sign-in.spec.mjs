// Sign-in and sign-out in several tabs, and moves through the history afterwards.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import { browserTests, signIn, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
// The edge on another site than the provider, as in production: neither receives the other's cookies.
const apart = () => start({ host: "localhost" });
const atProvider = (page, stack) => page.waitForURL((url) => url.href.startsWith(stack.issuer));
const cookieNames = async (context, stack) =>
  (await context.cookies(stack.edgeUrl)).map(({ name }) => name).sort();
const sessionCookie = async (context, stack) =>
  (await context.cookies(stack.edgeUrl)).find(({ name }) => name === "session")?.value;

/** Opens a guarded page in a new tab and waits for the provider's sign-in page. */
async function beginAt(context, stack, path) {
  const tab = await context.newPage();
  await tab.goto(path);
  await atProvider(tab, stack);
  return tab;
}

const FIRST = { path: "/account?tab=one", heading: "Profile" };
const SECOND = { path: "/account/session?tab=two", heading: "This session" };

for (const [what, order] of [
  ["the first to begin finishes first", [FIRST, SECOND]],
  ["the last to begin finishes first", [SECOND, FIRST]],
]) {
  test(`two tabs sign in at once and ${what}: both land on their own page, in one session`, async () => {
    const stack = await apart();
    const { context, page } = await window(stack);
    await page.close();
    const tabs = new Map();
    for (const wanted of [FIRST, SECOND]) tabs.set(wanted, await beginAt(context, stack, wanted.path));
    assert.equal((await cookieNames(context, stack)).length, 2, "two sign-ins are pending");
    const sessions = [];
    for (const wanted of order) {
      await signInAtProvider(tabs.get(wanted), stack);
      await h1(tabs.get(wanted), wanted.heading);
      sessions.push(await sessionCookie(context, stack));
    }
    assert.deepEqual(await cookieNames(context, stack), ["session"], "no sign-in is pending any more");
    for (const [{ path, heading }, tab] of tabs) {
      assert.equal(tab.url(), stack.edgeUrl + path);
      assert.equal(await tab.getByRole("alertdialog").count(), 0);
      await tab.reload();
      await h1(tab, heading);
      assert.equal(tab.url(), stack.edgeUrl + path);
    }
    const [replaced, current] = sessions;
    assert.notEqual(current, replaced);
    const asked = await fetch(`${stack.edgeUrl}/api/auth/me`, { headers: { cookie: `session=${replaced}` } });
    assert.equal(asked.status, 204, "the session of the tab that finished first was replaced, not added to");
  });
}

test("of three tabs one is given up: the others sign in, and it can still be taken up later", async () => {
  const stack = await apart();
  const { context, page } = await window(stack);
  const given = await beginAt(context, stack, "/account?tab=given-up");
  const tabs = [
    await beginAt(context, stack, "/account?tab=1"),
    await beginAt(context, stack, "/account?tab=2"),
  ];
  for (const tab of tabs) {
    await signInAtProvider(tab, stack);
    await h1(tab, "Profile");
  }
  assert.deepEqual(
    tabs.map((tab) => tab.url()),
    [1, 2].map((n) => `${stack.edgeUrl}/account?tab=${n}`),
  );
  const left = await cookieNames(context, stack);
  assert.equal(left.length, 2, `the session and the sign-in given up: ${left}`);
  await page.goto("/");
  await page.getByText("You are signed in.").waitFor();
  await signInAtProvider(given, stack);
  await h1(given, "Profile");
  assert.equal(given.url(), `${stack.edgeUrl}/account?tab=given-up`);
  assert.deepEqual(await cookieNames(context, stack), ["session"]);
});

test("a tab whose session is replaced by a sign-in in another tab goes on with the new one, and watches that", async () => {
  const stack = await apart();
  const { context, page } = await window(stack);
  await signIn(page, stack);
  await page.getByText("Signed out at the latest").waitFor();
  const before = await sessionCookie(context, stack);
  const other = await context.newPage();
  await other.goto("/api/auth/login?prompt=login&returnTo=/account/session");
  await signInAtProvider(other, stack);
  await h1(other, "This session");
  assert.notEqual(await sessionCookie(context, stack), before);
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  // Another browser ends the new session: a tab that still watched the old session would not notice.
  const elsewhere = await window(stack);
  await signIn(elsewhere.page, stack);
  await elsewhere.page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await elsewhere.page.getByRole("button", { name: "Sign out everywhere else" }).click();
  await elsewhere.page.getByRole("alertdialog").getByRole("button", { name: "Sign out" }).click();
  await elsewhere.page.getByText("You are not signed in anywhere else.").waitFor();
  for (const tab of [page, other]) await tab.getByRole("alertdialog").waitFor({ timeout: 90_000 });
});
