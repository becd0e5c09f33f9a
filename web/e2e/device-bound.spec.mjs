// Device-bound sessions, in browsers that can bind them and in browsers that cannot: the user stays signed in, and a
// copy of the cookies does not work.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test as runTest } from "node:test";
import { libfaketime } from "../../dev/chaos/clocks.mjs";
import {
  BROWSER_SECS,
  DURATION_SECS,
  ELSEWHERE,
  fetched,
  GRACE_SECS,
  HOST,
  makeTrust,
  openPrivately,
  openProfile,
  pause,
  SIBLING,
  startBound,
  startLinks,
  trustIn,
} from "./device-bound-browser.mjs";
import { startFirefox } from "./firefox.mjs";
import { assertAccessible, signInAtProvider, until } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
// Tests mostly wait for a cookie to expire; each has separate processes and browsers.
const AT_ONCE = 4;
const SIGNATURES_MAX = 6; // Chromium's limit per site in nine minutes
const LAPSE_MS = 60_000; // a page that asks late on a busy machine renews the proof
const PATIENT_SECS = 40; // a proof's lifetime in which a busy machine loads a page
const NOT_MODIFIED = 304; // for a file in the browser's cache
const NEW_SECRET = "n".repeat(40);
const BOTH = ["__Host-session", "__Host-session_bound"];

const trust = makeTrust();
after(() => trust.remove());

const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const names = (cookies) => cookies.map(({ name }) => name).sort();
const bound = (page) => page.getByText("Bound to this device", { exact: true }).first().waitFor();

let profiles = 0;
/** A separate browser for a person, closed after the test. */
async function person(t, stack, options) {
  profiles += 1;
  const profile = `profile-${profiles}`;
  const browser = await openProfile(trust, stack, profile, options);
  t.after(() => browser.close());
  return { ...browser, profile };
}

async function start(t, mode, options) {
  const stack = await startBound(trust, mode, options);
  t.after(() => stack.stop());
  return stack;
}

/** Gives these edges another secret, and starts them with it. */
async function setSecret(stack, edges, secret) {
  await Promise.all(edges.map((name) => stack.kill(name)));
  writeFileSync(join(stack.stateDir, "edge-secret"), `${secret}\n`, { mode: 0o600 });
  await Promise.all(edges.map((name) => stack.start(name)));
}

/** Signs in and opens the session's page. */
async function signIn({ page }, stack, account) {
  await page.goto("/account/session");
  await signInAtProvider(page, stack, account);
  await h1(page, "This session");
}

/** Waits until the browser has dropped its proof, which happens on a timer. */
const lapsed = (browser) =>
  until(async () => !(await browser.proof()), "the cookie of the proof ends", LAPSE_MS);

/** Checks that the page works without a sign-in for more than twice the proof's lifetime in the browser. */
async function goesOn(browser) {
  browser.answers.splice(0);
  for (const [path, heading] of [
    ["/account/session", "This session"],
    ["/account", "Profile"],
  ]) {
    await lapsed(browser);
    assert.equal(await fetched(browser.page), 200);
    await browser.page.goto(path);
    await h1(browser.page, heading);
  }
  const odd = browser.answers.filter(({ status }) => status !== 200 && status !== NOT_MODIFIED);
  assert.deepEqual(
    odd.map(({ path, status }) => [path, status]),
    [],
  );
  assert.ok(!browser.askedProvider());
}

/** Checks that the first edge has seen no request without proof. */
async function assertAllProven(stack) {
  const { missing = 0, skipped = 0, not_bound = 0 } = await stack.proofs();
  assert.deepEqual({ missing, skipped, not_bound }, { missing: 0, skipped: 0, not_bound: 0 });
}

describe("sessions bound to a device", { concurrency: AT_ONCE }, () => {
  test("a sign-in binds, and the page works on for lifetime after lifetime", async (t) => {
    const stack = await start(t, "offer");
    const browser = await person(t, stack);
    await signIn(browser, stack);
    await browser.page.goto("/account/sessions");
    await bound(browser.page);
    assert.deepEqual(names(await browser.cookies()), BOTH);
    assert.deepEqual([stack.registrations().length, stack.registrations(200).length], [1, 1]);
    const since = Date.now();
    while (Date.now() < since + (GRACE_SECS - BROWSER_SECS) * 1_000) {
      await lapsed(browser);
      const refreshes = stack.refreshes(200).length;
      assert.equal(await fetched(browser.page), 200);
      await until(() => stack.refreshes(200).length > refreshes, "the browser proves its key");
    }
    await goesOn(browser);
    await browser.page.goto("/account/sessions");
    await bound(browser.page);
    await assertAllProven(stack);
    assert.ok(browser.refreshed().length > 0);
  });

  test("copied cookies work on until their proof ends, in a browser that can bind too, and their owner notices nothing", async (t) => {
    const stack = await start(t, "offer", { edgeEnv: { EDGE_DEVICE_BOUND: `offer:${PATIENT_SECS}` } });
    const owner = await person(t, stack);
    await signIn(owner, stack);
    const thief = await person(t, stack);
    await pause(GRACE_SECS);
    assert.equal(await fetched(owner.page), 200);
    const copied = await owner.cookies();
    assert.deepEqual(names(copied), BOTH);
    assert.equal((await stack.ask("/api/auth/me", copied)).status, 200);
    assert.equal((await stack.ask("/api/auth/me", [await owner.session()])).status, 204, "one cookie alone");
    await thief.context.addCookies(copied);
    await thief.page.goto("/account");
    await h1(thief.page, "Profile");

    const over = async () => (await stack.ask("/api/auth/me", copied)).status === 204;
    await until(over, "the copy is worth nothing", (PATIENT_SECS + 1) * 1_000);
    assert.equal(await fetched(thief.page), 204);
    await thief.page.goto("/account");
    assert.ok(thief.page.url().startsWith(stack.issuer), thief.page.url());
    const offers = thief.answers.map(({ response }) => response.headers()["secure-session-registration"]);
    assert.deepEqual(
      offers.filter((offer) => offer),
      [],
    );
    assert.deepEqual([thief.bindings.length, stack.registrations().length], [0, 1], "it cannot bind");

    assert.equal(await fetched(owner.page), 200);
    await owner.page.goto("/account");
    await h1(owner.page, "Profile");
    const unproven = stack.audit.filter(({ reason }) => reason === "no_proof");
    assert.ok(unproven.length > 0 && unproven.every(({ event }) => event === "device_binding"));
  });

  test("where it is a duty a sign-in lands on the page asked for, and a copied session cookie is worth nothing at once", async (t) => {
    const stack = await start(t, "require");
    const browser = await person(t, stack);
    await browser.page.goto("/account/session?n=1");
    await signInAtProvider(browser.page, stack);
    await h1(browser.page, "This session");
    assert.equal(browser.page.url(), `${stack.edgeUrl}/account/session?n=1`);
    const waited = browser.answers.filter(({ path }) => path === "/api/auth/device");
    assert.equal(waited.at(-1).status, 302, "it led through the page that waits");
    await browser.page.getByText("Bound to this device").waitFor();

    const [session, proof] = [await browser.session(), await browser.proof()];
    const page = { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    assert.equal((await stack.ask("/account", [session, proof], page)).status, 200);
    assert.equal((await stack.ask("/api/auth/me", [session])).status, 204);
    const led = await stack.ask("/account", [session], page);
    assert.equal(led.status, 307);
    assert.match(led.headers.location, /\/api\/auth\/login\?/);
    await goesOn(browser);
  });

  test("if binding is required, a browser without it gets a page that says so, and can sign out", async (t) => {
    const stack = await start(t, "require");
    const browser = await person(t, stack, { binds: false });
    const { page } = browser;
    await page.route("**/api/auth/device?*", (route) => route.abort("aborted")); // the page must not refresh its proof while the test looks at it
    await page.goto("/account/session?n=1");
    await signInAtProvider(page, stack);
    await h1(page, "One moment");
    await assertAccessible(page, "the page that waits");
    await page.unroute("**/api/auth/device?*");
    await page.getByRole("link", { name: "Continue" }).click();
    await h1(page, "This sign-in is not bound to your device");
    assert.equal(browser.answers.findLast(({ path }) => path === "/api/auth/device").status, 403);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await assertAccessible(page, `the page that says why (${colorScheme})`);
    }
    const again = await page.getByRole("link", { name: "Sign in again" }).getAttribute("href");
    assert.equal(
      new URL(again, stack.edgeUrl).searchParams.get("returnTo"),
      `${stack.edgeUrl}/account/session?n=1`,
    );
    assert.equal((await stack.ask("/api/auth/me", await browser.cookies())).status, 204);
    assert.deepEqual([browser.bindings.length, stack.registrations().length], [0, 0]);

    // Without a proof there is no ID token for the provider, so the provider asks.
    await page.goto("/api/auth/logout");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL((url) => url.origin === stack.edgeUrl);
    assert.deepEqual(names(await browser.cookies()), []);
  });

  test("a private window signs in as ever and works over a lifetime", async (t) => {
    const stack = await start(t, "offer");
    const browser = await openPrivately(trust, stack);
    t.after(() => browser.close());
    await signIn(browser, stack);
    await pause(GRACE_SECS);
    assert.equal(await fetched(browser.page), 200);
    await pause(DURATION_SECS);
    assert.equal(await fetched(browser.page), 200);
    await browser.page.goto("/account");
    await h1(browser.page, "Profile");
  });

  test("two tabs that ask at once when the proof has ended are both served", async (t) => {
    const stack = await start(t, "require");
    const browser = await person(t, stack);
    await signIn(browser, stack);
    const other = await browser.context.newPage();
    await other.goto("/account");
    await h1(other, "Profile");
    await lapsed(browser);
    const refreshes = stack.refreshes(200).length;
    const asked = [browser.page, other].flatMap((page) => [
      fetched(page),
      fetched(page, "/api/auth/me?again"),
    ]);
    assert.deepEqual(await Promise.all(asked), [200, 200, 200, 200]);
    assert.ok(stack.refreshes(200).length > refreshes);
    await lapsed(browser);
    await Promise.all([browser.page.goto("/account"), other.goto("/account/session")]);
    await Promise.all([h1(browser.page, "Profile"), h1(other, "This session")]);
    await assertAllProven(stack);
  });

  test("a sign-in as another user is bound again, and the earlier binding ends", async (t) => {
    const stack = await start(t, "require");
    const browser = await person(t, stack);
    await signIn(browser, stack);
    const [first] = browser.bindings;
    assert.equal(first.creationEventDetails.fetchResult, "Success");
    await browser.context.clearCookies({ domain: new URL(stack.issuer).hostname }); // the provider forgets the person
    await browser.page.goto("/api/auth/login?returnTo=/account");
    await signInAtProvider(browser.page, stack, stack.accounts[1]);
    await browser.page.getByText(stack.accounts[1].email, { exact: true }).waitFor();
    const sessions = () =>
      browser.bindings
        .filter(({ creationEventDetails }) => creationEventDetails)
        .map(({ sessionId }) => sessionId);
    await until(() => sessions().length === 2, "the new session is bound");
    const since = browser.bindings.length;
    await goesOn(browser);
    assert.equal(await browser.page.getByText(stack.accounts[1].email, { exact: true }).count(), 1);
    const ended = browser.bindings.filter(({ terminationEventDetails }) => terminationEventDetails);
    assert.deepEqual(
      ended.map(({ sessionId }) => sessionId),
      [first.sessionId],
    );
    const later = browser.bindings.slice(since).filter(({ refreshEventDetails }) => refreshEventDetails);
    const proved = later.filter(({ succeeded }) => succeeded).map(({ sessionId }) => sessionId);
    assert.deepEqual([...new Set(proved)], [sessions()[1]]);
    assert.ok((await stack.proofs()).over > 0);
  });

  test("a binding outlives edges, services, their secret and the browser", async (t) => {
    const stack = await start(t, "require", { edges: 2 });
    const first = await person(t, stack);
    await signIn(first, stack);
    await first.close();
    await Promise.all([stack.restart("session"), stack.restart("idp")]);
    await setSecret(stack, ["edge", "edge-2"], `${NEW_SECRET},${stack.secrets.edge}`);

    const browser = await openProfile(trust, stack, first.profile);
    t.after(() => browser.close());
    await lapsed(browser);
    await browser.page.goto("/account/sessions");
    await bound(browser.page);
    await goesOn(browser);
    assert.equal(stack.registrations().length, 1);
    assert.ok(browser.refreshed().length > 0);
  });

  test("a binding outlives its first secret, as does the session, whose cookie was signed again meanwhile", async (t) => {
    const stack = await start(t, "require", { sessionEnv: { SESSION_ROLL_INTERVAL: "0" } });
    const browser = await person(t, stack);
    await signIn(browser, stack);
    const { value } = await browser.session();
    await setSecret(stack, ["edge"], `${NEW_SECRET},${stack.secrets.edge}`);
    await lapsed(browser);
    assert.equal(await fetched(browser.page), 200);
    await browser.page.goto("/account");
    await h1(browser.page, "Profile");
    await until(async () => (await browser.session()).value !== value, "the edge signs the cookie again");
    await setSecret(stack, ["edge"], NEW_SECRET);
    browser.answers.splice(0);
    await lapsed(browser);
    assert.equal(await fetched(browser.page), 200);
    await goesOn(browser);
    assert.equal(stack.registrations().length, 1);
  });

  test("links of another site and of another host of this one lead to a page that knows who is signed in", async (t) => {
    const stack = await start(t, "require");
    const links = await startLinks(`${stack.edgeUrl}/account/session`);
    t.after(() => links.stop());
    const browser = await person(t, stack);
    await signIn(browser, stack);
    for (const host of [ELSEWHERE, SIBLING]) {
      await browser.page.goto(links.at(host));
      await lapsed(browser);
      browser.answers.splice(0);
      await browser.page.getByRole("link", { name: "there" }).click();
      await h1(browser.page, "This session");
      assert.ok(!browser.askedProvider(), host);
    }
  });

  test("while the session service is down no user is signed out, and afterwards every user continues", async (t) => {
    const stack = await start(t, "require");
    const browser = await person(t, stack);
    await signIn(browser, stack);
    const other = await browser.context.newPage();
    await stack.kill("session");
    await lapsed(browser);
    browser.answers.splice(0);
    const end = Date.now() + DURATION_SECS * 1_000;
    while (Date.now() < end) {
      assert.equal(await fetched(browser.page), 503);
      assert.equal((await other.goto("/account")).status(), 503);
      await pause(2);
    }
    const statuses = new Set(browser.answers.map(({ status }) => status));
    assert.ok(!statuses.has(204) && !statuses.has(302) && !statuses.has(401), [...statuses].join());
    assert.ok(await browser.session());
    await stack.start("session");
    // The browser's wait before a retry grows with each failure.
    await until(async () => (await fetched(browser.page)) === 200, "the browser goes on", 30_000);
    await other.close();
    await browser.page.goto("/account");
    await h1(browser.page, "Profile");
    await goesOn(browser);
    assert.equal(stack.registrations().length, 1);
  });

  for (const [what, others] of [
    ["an hour fast", "-3600"],
    ["an hour slow", "+3600"],
  ]) {
    test(`a browser whose clock is ${what} binds and goes on`, async (t) => {
      // Set the clock of all other processes: a browser under libfaketime needs minutes for a page.
      const clock = { LD_PRELOAD: libfaketime(), FAKETIME: others, DONT_FAKE_MONOTONIC: "1" };
      const stack = await start(t, "require", { env: { idp: clock, session: clock, edge: clock } });
      const browser = await person(t, stack);
      await signIn(browser, stack);
      const told = new Date((await stack.ask("/api/auth/me", [])).headers.date).getTime();
      assert.ok(Math.abs(told - Date.now() - Number(others) * 1_000) < 60_000, `the edge says ${told}`);
      await goesOn(browser);
      await assertAllProven(stack);
    });
  }

  test("signing out in the page ends the binding and leaves nothing behind", async (t) => {
    const stack = await start(t, "require");
    const browser = await person(t, stack);
    await signIn(browser, stack);
    const copied = await browser.cookies();
    browser.answers.splice(0);
    await browser.page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
    await h1(browser.page, "You are signed out.");
    assert.equal(await browser.session(), undefined);
    assert.equal((await stack.ask("/api/auth/me", copied)).status, 204, "both cookies of before");
    await lapsed(browser);
    assert.equal(await fetched(browser.page), 204);
    await until(
      () => browser.bindings.some(({ terminationEventDetails }) => terminationEventDetails),
      "the browser forgets its binding",
    );
    assert.ok((await stack.proofs()).over > 0);
    assert.deepEqual(names(await browser.cookies()), []);
    const left = browser.answers.find(({ path }) => path === "/api/auth/logout").response;
    const cleared = (await left.headersArray())
      .filter(({ name, value }) => name.toLowerCase() === "set-cookie" && /Max-Age=0/.test(value))
      .map(({ value }) => value.split("=")[0]);
    assert.deepEqual(
      cleared.filter((name) => BOTH.includes(name)).sort(),
      BOTH,
      "signing out clears both cookies",
    );
  });

  test("a browser that may not sign for a while has to wait and is not signed out", async (t) => {
    const stack = await start(t, "require", { edgeEnv: { EDGE_DEVICE_BOUND: "require:3600" } });
    const browser = await person(t, stack);
    await signIn(browser, stack);
    for (let signatures = 1; signatures < SIGNATURES_MAX; signatures += 1) {
      await browser.page.goto("/api/auth/login?returnTo=/account/session");
      await h1(browser.page, "This session");
    }
    assert.equal(stack.registrations(200).length, SIGNATURES_MAX);
    const reasons = [];
    browser.devtools.on("Network.requestWillBeSentExtraInfo", ({ headers }) =>
      reasons.push(headers["secure-session-skipped"]),
    );
    await browser.context.clearCookies({ name: "__Host-session_bound" });
    browser.answers.splice(0);
    assert.equal(await fetched(browser.page), 503);
    assert.equal((await browser.page.goto("/account")).status(), 503);
    assert.match(reasons.filter((reason) => reason).join(), /^quota_exceeded;session_identifier="\w+"/);
    assert.ok(await browser.session());
    assert.ok((await stack.proofs()).skipped > 0);

    // The limit lasts as long as the browser runs.
    await browser.close();
    const later = await openProfile(trust, stack, browser.profile);
    t.after(() => later.close());
    await later.page.goto("/account");
    await h1(later.page, "Profile");
    assert.ok(!later.askedProvider());
    assert.equal(stack.registrations().length, SIGNATURES_MAX);
  });

  test("Firefox signs in as ever: nothing is bound, one cookie, over a lifetime", async (t) => {
    const stack = await start(t, "offer");
    const profile = join(trust.folder, "firefox");
    trustIn(profile, trust.authority);
    const firefox = await startFirefox(profile, [HOST]);
    t.after(() => firefox.stop());
    const [account] = stack.accounts;
    const profileShown = () =>
      firefox.run("return document.body.innerText.includes(arguments[0])", account.email);
    await firefox.goto(`${stack.edgeUrl}/account`);
    await firefox.fill("#email", account.email);
    await firefox.fill("#password", account.password);
    await firefox.click("button[type=submit]");
    await until(async () => (await firefox.heading()) === "Profile", "the account page");
    await until(profileShown, "the profile");
    assert.deepEqual(names(await firefox.cookies()), ["__Host-session"]);
    await pause(DURATION_SECS + 1);
    const status = await firefox.run("return fetch('/api/auth/me').then(({ status }) => status)");
    assert.equal(status, 200);
    await firefox.goto(`${stack.edgeUrl}/account`);
    await until(profileShown, "the profile");
    assert.equal(await firefox.url(), `${stack.edgeUrl}/account`);
    assert.deepEqual([stack.registrations().length, stack.refreshes().length], [0, 0]);
  });
});
