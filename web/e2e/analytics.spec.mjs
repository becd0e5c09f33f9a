// Product analytics with the real library, through the real edge, to a server that checks everything it receives.
import assert from "node:assert/strict";
import { after, before, beforeEach, test as runTest } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { startAnalyticsServer } from "./analytics-server.mjs";
import { assertAccessible, atRest, browserTests, signIn, until } from "./support.mjs";

const folder = fileURLToPath(new URL("../test-results/screens/", import.meta.url));
const TEST_MS = 240_000;
// The library waits at least three seconds before a retry.
const RETRY_MS = 30_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window: open } = browserTests();

/** The library sends nothing for a browser that reports automation, so this browser reports none. */
async function window(stack) {
  const opened = await open(stack, {
    userAgent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36",
  });
  await opened.context.addInitScript(() => {
    Object.defineProperty(navigator, "webdriver", { get: () => false });
    Object.defineProperty(navigator, "userAgentData", { get: () => undefined }); // it would name a headless browser
  });
  return opened;
}

let server;
let on;
before(async () => {
  server = await startAnalyticsServer();
  on = { edgeEnv: { EDGE_ANALYTICS_HOST: server.url, EDGE_ANALYTICS_TOKEN: "phc_browser_test" } };
});
after(() => server?.stop());
// The people of earlier tests: their windows may send closing events during the next test.
const earlier = new Set();
beforeEach(() => {
  for (const { properties } of [...server.events(), ...server.replays()]) earlier.add(properties.distinct_id);
  server.requests.length = 0;
});

const card = (page) => page.getByRole("region", { name: "How these pages are used" });
const yes = (page) => card(page).getByRole("button", { name: "Yes, allow" }).click();

/** Collects the browser's requests that concern analytics. */
function watched(page) {
  const asked = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (/^\/ingest|\/(recorder|Analytics|posthog)[^/]*\.js$/i.test(pathname)) asked.push(pathname);
  });
  return asked;
}

test("off, as it comes: no question, no code, no request", async () => {
  const stack = await start();
  const { page } = await window(stack);
  const asked = watched(page);
  await signIn(page, stack);
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  assert.equal(await card(page).count(), 0);
  assert.deepEqual(asked, []);
  assert.deepEqual(server.requests, []);
});

test("on, but not agreed to: a question that can be read and answered, and no request before it is", async () => {
  const stack = await start(on);
  const { page } = await window(stack);
  const asked = watched(page);
  await signIn(page, stack);
  await card(page).waitFor();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `the question, ${colorScheme}`);
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 844 });
      await atRest(page);
      await page.screenshot({
        path: `${folder}analytics-question-${colorScheme}-${width}.png`,
        fullPage: true,
      });
    }
  }
  await card(page).getByRole("button", { name: "No" }).click();
  await card(page).getByRole("heading", { name: "We do not record how you use these pages." }).waitFor();
  await page.reload();
  await card(page).getByRole("heading", { name: "We do not record how you use these pages." }).waitFor();
  assert.deepEqual(
    asked.filter((path) => !/Analytics/.test(path)),
    [],
    "no library, no request",
  );
  assert.deepEqual(server.requests, []);
});

test("a browser that does not want to be tracked is not even asked", async () => {
  const stack = await start(on);
  const { page, context } = await window(stack);
  await context.addInitScript(() => Object.defineProperty(navigator, "doNotTrack", { get: () => "1" }));
  const asked = watched(page);
  await signIn(page, stack);
  await page.getByText("Signed out at the latest").waitFor();
  assert.equal(await card(page).count(), 0);
  assert.deepEqual(asked, []);
  assert.deepEqual(server.requests, []);
});

test("agreed to: configuration, page views and replays arrive, and tell nothing about who it is", async () => {
  const stack = await start(on);
  const { page, context } = await window(stack);
  await signIn(page, stack);
  await page.goto("/account?from=mail&code=hunter2#claims");
  await yes(page);
  await until(
    () =>
      server.requests.some(
        ({ method, pathname }) => method === "GET" && pathname === "/array/phc_browser_test/config",
      ),
    "the configuration is asked for",
  );
  await page.getByRole("button", { name: "Show claims" }).click();
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  await until(
    () => server.events().some(({ event }) => event === "$pageview"),
    "a page view arrives",
    RETRY_MS,
  );
  await until(
    () => server.replays().some(({ event }) => event === "$snapshot"),
    "a replay batch arrives",
    RETRY_MS,
  );

  const sent = server.requests.filter(({ method }) => method === "POST");
  assert.ok(
    sent
      .filter(({ pathname }) => pathname === "/s/")
      .every(({ zipped, content }) => zipped && Array.isArray(content)),
    "replays are gzipped arrays",
  );
  const people = new Set(
    [...server.events(), ...server.replays()].map(({ properties }) => properties.distinct_id),
  );
  assert.equal(people.size, 1);
  assert.match([...people][0], /^[\w-]{22}$/);
  for (const { headers, pathname } of server.requests) {
    assert.equal(headers.cookie, undefined, pathname);
    assert.equal(headers.authorization, undefined, pathname);
    assert.equal(headers["x-forwarded-for"], undefined, pathname);
  }
  // Snapshots are compressed a second time inside the batch.
  const everything = JSON.stringify([server.events(), server.replays().map(unpacked)]);
  for (const word of [
    "Ada",
    "Lovelace",
    "ada@example.test",
    "ada-4c1e7b",
    "hunter2",
    "Chrome on Linux",
    "127.0.0.1:9",
  ])
    assert.ok(
      !everything.includes(word),
      `${word} was sent: ${everything.slice(Math.max(0, everything.indexOf(word) - 200), everything.indexOf(word) + 100)}`,
    );
  for (const { name, value } of await context.cookies(stack.edgeUrl))
    assert.ok(!everything.includes(value), `the cookie ${name} was sent`);
  assert.ok(everything.includes("/account"), "the pages' own addresses were");
  const kept = await page.evaluate(() => Object.keys(localStorage));
  assert.deepEqual(kept, ["analytics"]);
  assert.equal(await page.evaluate(() => document.cookie), "");
});

test("never on the pages of signing in and out", async () => {
  const stack = await start(on);
  const { page } = await window(stack);
  await signIn(page, stack);
  await yes(page);
  await until(() => server.events().some(({ event }) => event === "$pageview"), "it is at work", RETRY_MS);
  await page.goto("/sign-in-error?error=access_denied");
  await page.getByRole("heading", { name: "Sign-in did not work." }).waitFor();
  assert.equal(await card(page).count(), 0);
  await page.goto("/signed-out");
  await page.getByRole("heading", { name: "You are still signed in." }).waitFor();
  assert.equal(await card(page).count(), 0);
  const addresses = JSON.stringify([server.events(), server.replays().map(unpacked)]);
  assert.doesNotMatch(addresses, /sign-in-error|signed-out|\/api\/auth/);
});

test("a server in trouble is tried again, what it refuses is dropped, and the page never notices", async () => {
  const stack = await start(on);
  const { page, expects } = await window(stack);
  expects(/status of (400|503)/);
  server.failing["/e/"].push(503);
  await signIn(page, stack);
  await yes(page);
  const posts = (status) =>
    server.requests.filter((request) => request.pathname === "/e/" && request.status === status);
  await until(() => posts(503).length === 1, "the first batch is refused", RETRY_MS);
  await until(() => server.events().some(({ event }) => event === "$pageview"), "it comes again", RETRY_MS);
  const refused = server.events(503).map(({ uuid }) => uuid);
  assert.ok(refused.length > 0 && refused.every(Boolean), JSON.stringify(server.events(503)));
  await until(
    () => refused.every((uuid) => server.events().some((event) => event.uuid === uuid)),
    "nothing was lost",
    RETRY_MS,
  );

  server.failing["/e/"].push(400);
  await page.getByRole("link", { name: "This session" }).click();
  await until(() => posts(400).length === 1, "the server rejects a batch permanently", RETRY_MS);
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  const dropped = server.events(400).map(({ uuid }) => uuid);
  const later = () =>
    server.events().filter(({ properties }) => /account\/sessions/.test(properties.$current_url ?? ""));
  await until(() => later().length > 0, "the next one passes", RETRY_MS);
  assert.ok(
    dropped.every((uuid) => !server.events().some((event) => event.uuid === uuid)),
    "it was not sent again",
  );
});

test("a change of mind ends it at once", async () => {
  const stack = await start(on);
  const { page } = await window(stack);
  await signIn(page, stack);
  await yes(page);
  // The recorder holds its data back until the person acts.
  const claims = page.getByRole("button", { name: /(Show|Hide) claims/ });
  await until(
    async () => (await claims.click().then(() => server.replays().length)) > 0,
    "it is at work",
    RETRY_MS,
  );
  await card(page).getByRole("button", { name: "Stop recording" }).click();
  await card(page).getByRole("heading", { name: "We do not record how you use these pages." }).waitFor();
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  await page.reload();
  await page.getByText("This browser").waitFor();
  const views = server
    .events()
    .filter(({ properties }) => /account\/sessions/.test(properties.$current_url ?? ""))
    .filter(({ properties }) => !earlier.has(properties.distinct_id));
  assert.deepEqual(views, []);
});

/** A snapshot event with the recorder's compressed parts unpacked. */
function unpacked(event) {
  const open = (value) => {
    if (typeof value === "string" && value.charCodeAt(0) === 0x1f && value.charCodeAt(1) === 0x8b)
      return JSON.parse(gunzipSync(Buffer.from(value, "latin1")).toString("utf8"));
    if (Array.isArray(value)) return value.map(open);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, open(inner)]));
    return value;
  };
  return open(event);
}
