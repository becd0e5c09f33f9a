// What the browser tests share: the real stack, a real browser, and a page that notices what must never happen.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { after, afterEach } from "node:test";
import { chromium } from "playwright-core";
import { startStack } from "../../dev/stack.mjs";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Chromium without windows takes half the CPU time. */
const HEADLESS = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
// Everything here happens on one machine: a step that takes longer is not going to happen.
const STEP_MS = 15_000;
const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Starts provider, session service and edge on free ports. Options as in dev/stack.mjs. */
export async function startProduct(options = {}) {
  if (!existsSync(new URL("../dist/index.html", import.meta.url)))
    throw new Error("no build to test: run `npm run build` first");
  // Letters and digits alone: a secret that begins with a dash is no argument.
  return startStack({ ...options, secrets: { client: randomBytes(32).toString("hex"), ...options.secrets } });
}

/** Starts a browser; with `backForwardCache` it keeps pages that were left alive, as people's browsers do and tests' do not. */
export async function startBrowser({ backForwardCache = false } = {}) {
  return chromium.launch({
    executablePath: backForwardCache ? CHROMIUM : HEADLESS,
    ignoreDefaultArgs: backForwardCache ? ["--disable-back-forward-cache"] : [],
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
  });
}

/**
 * What a file of browser tests works with: one browser, stacks started when first asked for, windows that are closed after
 * each test. A console error or warning, an uncaught error or a request to a foreign origin fails the test it appeared in,
 * but for what the test announced with `window.expects(pattern, …)`.
 */
export function browserTests() {
  let browser;
  const stacks = new Map();
  const windows = [];

  afterEach(async () => {
    const closing = windows.splice(0);
    const left = closing.flatMap(({ seen }) => unexpected(seen));
    for (const { context } of closing) await context.close();
    assert.deepEqual(left, [], "the console was quiet");
  });
  after(async () => {
    await browser?.close();
    for (const stack of stacks.values())
      await stack.then(
        (started) => started.stop(),
        () => {},
      );
  });

  const stackOf = (options) => {
    const key = JSON.stringify(options);
    if (!stacks.has(key)) {
      const started = startProduct(options);
      started.catch(() => stacks.delete(key)); // one that did not start is no stack of the tests to come
      stacks.set(key, started);
    }
    return stacks.get(key);
  };
  return {
    stack: (options = {}) => stackOf(options),
    async window(stack, options) {
      browser ??= await startBrowser();
      const opened = await openWindow(browser, stack, options);
      windows.push(opened);
      return opened;
    },
  };
}

/**
 * A window of its own person (fresh cookies), with what it saw: `problems` are console errors and warnings, uncaught errors
 * and requests to other origins than the stack's; `bodies` is every text the edge sent.
 */
export async function openWindow(browser, stack, options = {}) {
  const context = await browser.newContext({ baseURL: stack.edgeUrl, colorScheme: "light", ...options });
  context.setDefaultTimeout(STEP_MS);
  const seen = { problems: [], bodies: [], pending: [], expected: [] };
  const ours = [...stack.edgeUrls, stack.edgeUrl, stack.issuer].map((url) => new URL(url).origin);
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      seen.problems.push(`console ${message.type()}: ${message.text()}`);
  });
  context.on("weberror", (error) => seen.problems.push(`uncaught: ${error.error()}`));
  context.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith("http") && !ours.includes(origin))
      seen.problems.push(`foreign request: ${request.url()}`);
  });
  // Finished ones only: a stream, or a call given up when its page was left, has no whole body.
  context.on("requestfinished", (request) => {
    if (request.url().startsWith(stack.edgeUrl)) seen.pending.push(keepBody(request, seen.bodies));
  });
  const page = await context.newPage();
  return { context, page, seen, expects: (...patterns) => seen.expected.push(...patterns) };
}

async function keepBody(request, bodies) {
  // A window that is closed meanwhile has nothing to keep.
  const response = await request.response().catch(() => null);
  if (!response || (response.status() >= 300 && response.status() < 400)) return;
  const kept = await Promise.race([
    response.text().catch(() => null),
    new Promise((resolve) => setTimeout(resolve, 2_000, null)),
  ]);
  if (kept !== null) bodies.push({ url: response.url(), text: kept });
}

/** Fills in the provider's sign-in page and waits until the browser is back at the edge. */
export async function signInAtProvider(page, stack, account = stack.accounts[0]) {
  await page.waitForURL((url) => url.href.startsWith(stack.issuer));
  await page.getByLabel("E-mail").fill(account.email);
  await page.getByLabel("Password").fill(account.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await Promise.race([
    page.waitForURL((url) => url.href.startsWith(stack.edgeUrl)),
    page
      .getByRole("button", { name: "Continue" })
      .click()
      .then(() => page.waitForURL((url) => url.href.startsWith(stack.edgeUrl))),
  ]);
}

/** From nothing to the account page. */
export async function signIn(page, stack, account) {
  await page.goto("/");
  await page.locator("main").getByRole("link", { name: "Sign in" }).click();
  await signInAtProvider(page, stack, account);
  await page.getByRole("heading", { name: "Profile", level: 1 }).waitFor();
}

const unexpected = (seen) =>
  seen.problems.filter((problem) => !seen.expected.some((pattern) => pattern.test(problem)));

/** Fails when the console had something to say, leaving out what a test provoked on purpose. */
export function assertQuiet(seen, expected = []) {
  seen.expected.push(...expected);
  assert.deepEqual(unexpected(seen), []);
}

/** Runs axe over the page in one theme and fails with what it found. */
export async function assertAccessible(page, where) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await readAxe());
  await atRest(page);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }),
  );
  const found = violations.map(
    ({ id, nodes }) =>
      `${where}: ${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`,
  );
  assert.deepEqual(found, []);
}

/** Waits until fonts are there and whatever ends of itself has moved to its end: only then a page looks as it is meant to. */
export async function atRest(page) {
  await page.evaluate(async () => {
    await document.fonts.ready;
    const finite = document
      .getAnimations()
      .filter((animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime));
    await Promise.all(finite.map((animation) => animation.finished.catch(() => {})));
  });
}

let axe;
async function readAxe() {
  const { readFile } = await import("node:fs/promises");
  axe ??= await readFile(axeSource, "utf8");
  return axe;
}

/** Polls until `check` gives something true, for things no locator waits for. */
export async function until(check, what, withinMs = STEP_MS) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
