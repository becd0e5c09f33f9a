// Shared code of the browser tests: the real stack, a real browser, and windows that record unexpected problems.
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
// All processes run on one machine: a step that exceeds this limit will not succeed.
const STEP_MS = 45_000; // other suites keep the cores busy
const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Starts provider, session service and edge on free ports. Takes the options of dev/stack.mjs. */
export async function startProduct(options = {}) {
  if (!existsSync(new URL("../dist/index.html", import.meta.url)))
    throw new Error("no build to test: run `npm run build` first");
  // Only letters and digits: a program would take a secret with a leading dash for an option.
  return startStack({ ...options, secrets: { client: randomBytes(32).toString("hex"), ...options.secrets } });
}

/**
 * Starts a browser with additional arguments; with `backForwardCache` it keeps left pages alive, as people's browsers
 * do. `isWhole` chooses the browser that people have, which can block third-party cookies.
 */
export async function startBrowser({ backForwardCache = false, isWhole = backForwardCache, args = [] } = {}) {
  return chromium.launch({
    executablePath: isWhole ? CHROMIUM : HEADLESS,
    ignoreDefaultArgs: backForwardCache ? ["--disable-back-forward-cache"] : [],
    args: [
      "--no-sandbox",
      "--disable-background-networking",
      "--disable-component-update",
      "--no-first-run",
      ...args,
    ],
  });
}

/**
 * The tools of a file of browser tests: one browser, stacks that start on first use, and windows that close after
 * each test. Console errors or warnings, uncaught errors and requests to foreign origins fail the test, unless
 * the test announced them with `window.expects(pattern, …)`.
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
      started.catch(() => stacks.delete(key)); // drop a failed stack, so that later tests start a new one
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
 * A person's window with fresh cookies and its records: `problems` holds console errors and warnings, uncaught errors
 * and requests to foreign origins; `bodies` holds every text that the edge sent.
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
  // Only finished requests: streams and cancelled calls have no complete body.
  context.on("requestfinished", (request) => {
    if (request.url().startsWith(stack.edgeUrl)) seen.pending.push(keepBody(request, seen.bodies));
  });
  const page = await context.newPage();
  return { context, page, seen, expects: (...patterns) => seen.expected.push(...patterns) };
}

async function keepBody(request, bodies) {
  // A window that has closed in the meantime has no body to keep.
  const response = await request.response().catch(() => null);
  if (!response || (response.status() >= 300 && response.status() < 400)) return;
  const kept = await Promise.race([
    response.text().catch(() => null),
    new Promise((resolve) => setTimeout(resolve, 2_000, null)),
  ]);
  if (kept !== null) bodies.push({ url: response.url(), text: kept });
}

/** Fills in the provider's sign-in page and waits until the browser has returned to the edge. */
export async function signInAtProvider(page, stack, account = stack.accounts[0]) {
  await page.waitForURL((url) => url.href.startsWith(stack.issuer));
  await page.getByLabel("E-mail").fill(account.email);
  await page.getByLabel("Password").fill(account.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const returned = page.waitForURL((url) => url.href.startsWith(stack.edgeUrl));
  const consent = page.getByRole("button", { name: "Continue", exact: true });
  const asked = consent.waitFor().then(() => page.url().startsWith(stack.issuer) && consent.click());
  asked.catch(() => {}); // the provider asks for consent only once
  await Promise.race([returned, asked]);
  await returned;
}

/** Signs in and opens the account page. */
export async function signIn(page, stack, account) {
  await page.goto("/");
  await page.locator("main").getByRole("link", { name: "Sign in" }).click();
  await signInAtProvider(page, stack, account);
  // A dialog about the session's end may already be open: it hides the heading from roles.
  await page.locator("h1", { hasText: "Profile" }).waitFor();
}

const unexpected = (seen) =>
  seen.problems.filter((problem) => !seen.expected.some((pattern) => pattern.test(problem)));

/** Fails on console messages, except those that a test provoked on purpose. */
export function assertQuiet(seen, expected = []) {
  seen.expected.push(...expected);
  assert.deepEqual(unexpected(seen), []);
}

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** The rules whose verdict depends on colours: another theme needs no others. */
export const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** Runs axe on the page in one theme, and fails with its findings. */
export async function assertAccessible(page, where, rules = RULES) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await readAxe());
  await atRest(page);
  const { violations } = await page.evaluate(
    (runOnly) => globalThis.axe.run(document, { runOnly, resultTypes: ["violations"] }),
    rules,
  );
  const found = violations.map(
    ({ id, nodes }) =>
      `${where}: ${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`,
  );
  assert.deepEqual(found, []);
}

/** Waits for fonts and for the end of finite animations: only then does a page have its final look. */
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

/** Polls until `check` returns a truthy value, for conditions that no locator covers. */
export async function until(check, what, withinMs = STEP_MS) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
