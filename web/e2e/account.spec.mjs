// The app in a real browser on the real stack: provider, session service, edge.
import assert from "node:assert/strict";
import { after, afterEach, before, test as runTest } from "node:test";
import {
  assertAccessible,
  assertQuiet,
  openWindow,
  signIn,
  signInAtProvider,
  startBrowser,
  startProduct,
  until,
} from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);

let stack;
let browser;
const open = [];

before(async () => {
  stack = await startProduct();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await stack?.stop();
});
afterEach(async () => {
  for (const { context } of open.splice(0)) await context.close();
});

async function window(options) {
  const opened = await openWindow(browser, stack, options);
  open.push(opened);
  return opened;
}

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();

test("a person signs in, sees the profile, reloads and signs out", async () => {
  const { page, context, seen } = await window();
  await signIn(page, stack);
  await page.getByRole("heading", { name: "Ada Lovelace" }).waitFor();
  await page.getByText("ada@example.test", { exact: true }).waitFor();
  await page.getByText("Chrome on Linux").waitFor();
  await page.getByText("Signed out at the latest").waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Ada Lovelace" }).waitFor();
  await page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
  await h1(page, "You are signed out.");
  assert.equal(new URL(page.url()).pathname, "/signed-out");
  const me = await context.request.get(`${stack.edgeUrl}/api/auth/me`);
  assert.equal(me.status(), 204);
  assertQuiet(seen);
});

// conformance: B-041 B-059
test("no token reaches the browser: not in a body, not in storage", async () => {
  const { page, context, seen } = await window();
  await signIn(page, stack);
  await page.getByRole("button", { name: "Show claims" }).click();
  await page.getByRole("button", { name: "Refresh from provider" }).click();
  await page.getByText("Your profile is up to date.").waitFor();
  await Promise.all(seen.pending);
  assert.ok(
    seen.bodies.some(({ url }) => url.includes("/api/auth/me")),
    "the profile was among the bodies",
  );
  const JWT = /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\./;
  for (const { url, text } of seen.bodies.filter(({ url }) => !url.includes("/assets/"))) {
    assert.doesNotMatch(text, JWT, url);
    assert.doesNotMatch(text, /"(access|refresh|id)_token"/, url);
  }
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.doesNotMatch(stored, /ada|eyJ/i);
  assert.deepEqual(Object.keys(JSON.parse(stored)[0]), []);
  assert.deepEqual(Object.keys(JSON.parse(stored)[1]), []);
  assert.equal(await page.evaluate(() => document.cookie), "");
  for (const cookie of await context.cookies(stack.edgeUrl)) assert.ok(cookie.httpOnly, cookie.name);
  assertQuiet(seen);
});

test("a guarded page sends a visitor to sign in and gets the visitor back, query included", async () => {
  const { page, seen } = await window();
  await page.goto("/account/session?from=mail&n=1%262");
  await signInAtProvider(page, stack);
  await h1(page, "This session");
  assert.equal(page.url(), `${stack.edgeUrl}/account/session?from=mail&n=1%262`);
  assertQuiet(seen);
});

test("moving to a guarded page inside the app keeps the fragment over the sign-in", async () => {
  const { page, seen } = await window();
  await page.goto("/signed-out");
  await h1(page, "You are signed out.");
  await page.evaluate(() => {
    history.pushState(null, "", "/account?view=all#claims");
    dispatchEvent(new PopStateEvent("popstate"));
  });
  await signInAtProvider(page, stack);
  await h1(page, "Profile");
  assert.equal(page.url(), `${stack.edgeUrl}/account?view=all#claims`);
  // The page's first call, before the redirect, may fail with an error in the console.
  assertQuiet(seen);
});

test("the service goes and comes back: a banner, nothing lost, no sign-in", async () => {
  const { page, seen } = await window();
  await signIn(page, stack);
  await stack.kill("session", "SIGKILL");
  try {
    await page.getByRole("button", { name: "Refresh from provider" }).click();
    await page.getByText("The service is not responding").waitFor();
    assert.ok(await page.getByRole("heading", { name: "Ada Lovelace" }).isVisible());
  } finally {
    await stack.start("session");
  }
  await page.getByText("The service is not responding").waitFor({ state: "detached", timeout: 90_000 });
  await page.getByRole("heading", { name: "Ada Lovelace" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Ada Lovelace" }).waitFor();
  assertQuiet(seen, [/status of (429|5\d\d)/, /ERR_/]);
});

test("signing out in one tab signs out the other at once", async () => {
  const { page, context, seen } = await window();
  await signIn(page, stack);
  const second = await context.newPage();
  await second.goto("/account");
  await h1(second, "Profile");
  await page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
  await h1(second, "You are signed out.");
  await h1(page, "You are signed out.");
  assertQuiet(seen);
});

test("two browsers see each other; one ends the other, which says so and knows the way back", async () => {
  const [first, second] = [await window(), await window()];
  // Earlier tests leave sessions of the same person, so another person signs in here.
  const grace = stack.accounts[1];
  await signIn(first.page, stack, grace);
  await first.page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await first.page.getByText("You are not signed in anywhere else.").waitFor();
  await signIn(second.page, stack, grace);
  const rows = first.page.getByRole("main").getByRole("listitem");
  await until(
    async () => (await rows.count()) === 2,
    "the other browser's session appears by itself",
    40_000,
  );
  await rows.filter({ hasNotText: "This browser" }).getByRole("button").click();
  await rows.getByText("Chrome on Linux is signed out.").waitFor();
  await until(async () => (await rows.getByRole("button").count()) === 1, "the row says so instead");
  const dialog = second.page.getByRole("alertdialog");
  await dialog.waitFor({ timeout: 90_000 });
  assert.match(
    (await dialog.getByRole("link", { name: "Sign in" }).getAttribute("href")) ?? "",
    /returnTo=%2Faccount/,
  );
  assertQuiet(first.seen);
  assertQuiet(second.seen);
});

test("a person switches to another account at the provider, and goes on as it", async () => {
  const { page: first, context, seen } = await window();
  await signIn(first, stack);
  const page = await context.newPage();
  const choose = async () => {
    await page.goto("/api/auth/login?prompt=select_account&returnTo=/account");
    await page.getByRole("heading", { name: "Choose an account" }).waitFor();
    await assertAccessible(page, "the choice of an account");
  };
  await choose();
  await page.getByRole("button", { name: "Grace Hopper" }).click();
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Grace Hopper" }).waitFor();
  await page.getByText("Example ID").waitFor();
  await choose();
  await page.getByRole("button", { name: "Continue as Grace Hopper" }).click();
  await page.getByRole("heading", { name: "Grace Hopper" }).waitFor();
  assertQuiet(seen);
});

test("staying signed in extends the session", async () => {
  const { page, seen } = await window();
  await signIn(page, stack);
  await page.getByRole("link", { name: "This session" }).click();
  await page.getByRole("button", { name: "Stay signed in" }).click();
  await page.getByText(/You stay signed in until/).waitFor();
  assertQuiet(seen);
});

for (const colorScheme of ["light", "dark"]) {
  test(`every page is accessible in the ${colorScheme} theme`, async () => {
    const { page, seen } = await window({ colorScheme, viewport: { width: 320, height: 800 } });
    for (const [path, heading] of [
      ["/", "Welcome."],
      ["/signed-out", "You are signed out."],
      ["/sign-in-error?error=access_denied&request_id=x", "Sign-in did not work."],
      ["/nowhere", "There is nothing at this address."],
    ]) {
      await page.goto(path);
      await h1(page, heading);
      await assertAccessible(page, path);
    }
    await signIn(page, stack);
    for (const [path, proof] of [
      ["/", "You are signed in."],
      ["/account", "This device"],
      ["/account/sessions", "This browser"],
      ["/account/session", "What you have allowed"],
    ]) {
      await page.goto(path);
      await page.getByText(proof).first().waitFor();
      await assertAccessible(page, path);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.equal(overflow, 0, `${path} scrolls sideways at 320 px`);
    }
    assertQuiet(seen);
  });
}

test("the whole account page works with the keyboard alone", async () => {
  const { page, seen } = await window();
  await signIn(page, stack);
  await page.reload();
  await h1(page, "Profile");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
  const reached = new Set();
  for (let presses = 0; presses < 20; presses += 1) {
    await page.keyboard.press("Tab");
    reached.add(
      await page.evaluate(
        () => document.activeElement?.textContent?.trim() || document.activeElement?.getAttribute("name"),
      ),
    );
  }
  for (const name of [
    "Profile",
    "Your sessions",
    "Sign out",
    "Refresh from provider",
    "Show claims",
    "theme",
  ]) {
    assert.ok(reached.has(name), `${name} among ${[...reached]}`);
  }
  assertQuiet(seen);
});
