// Events while a page is open: sessions expire, networks fail, responses are malformed, other browsers act.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import { fileURLToPath } from "node:url";
import { absurdAnswer, afterTheft, done, manySessions } from "./states.mjs";
import { assertAccessible, browserTests, signIn, signInAtProvider, until } from "./support.mjs";

const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

// Two minutes and a few seconds: the warning comes soon after sign-in, and goes when the person stays.
const ABOUT_TO_WARN = {
  sessionEnv: {
    SESSION_ROLLING_DURATION: "125",
    SESSION_ABSOLUTE_DURATION: "3600",
    SESSION_ROLL_INTERVAL: "0",
  },
};
const ABOUT_TO_END = {
  sessionEnv: {
    SESSION_ROLLING_DURATION: "45", // a busy machine signs in and opens the page meanwhile
    SESSION_ABSOLUTE_DURATION: "3600",
    SESSION_ROLL_INTERVAL: "0",
  },
};
const LAST_END = { sessionEnv: { SESSION_ROLLING_DURATION: "125", SESSION_ABSOLUTE_DURATION: "125" } };
const screens = fileURLToPath(new URL("../test-results/screens/", import.meta.url));
const UNGUARDED = fileURLToPath(new URL("unguarded.toml", import.meta.url));
const FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0";
const RPC = "**/session.v1.BrowserSessionService/";
const DOWN = [/status of (429|5\d\d)/, /ERR_/];

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const warning = (page) => page.getByRole("alertdialog", { name: "Are you still there?" });
const details = (page) => page.getByText("Signed out at the latest").waitFor();
const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
const banner = (page) => page.getByRole("banner");

/** Moves the browser's clock for all functions that scripts can call. */
const moveClock = (context, ms) =>
  context.addInitScript((shift) => {
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...given) {
        if (given.length === 0) super(Real.now() + shift);
        else super(...given);
      }
      static now() {
        return Real.now() + shift;
      }
    };
  }, ms);

test("two minutes before the end a dialog counts down; staying takes it away and gives the focus back", async () => {
  // A minute before the warning: enough to sign in and focus a button on a busy machine.
  const later = { ...ABOUT_TO_WARN.sessionEnv, SESSION_ROLLING_DURATION: "180" };
  const stack = await start({ sessionEnv: later });
  const { page } = await window(stack);
  await signIn(page, stack);
  await details(page);
  await page.getByRole("button", { name: "Show claims" }).focus();
  await warning(page).waitFor({ timeout: 90_000 });
  await until(async () => (await focused(page)) === "Stay signed in", "the safe answer has the focus");
  const timer = warning(page).getByRole("timer");
  await timer.filter({ hasText: /signed out in (2:0\d|1:\d\d)/ }).waitFor();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `the expiry warning, ${colorScheme}`);
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 844 });
      if (process.env.PICTURES)
        await page.screenshot({ path: `${screens}expiry-${colorScheme}-${width}.png` });
    }
  }
  for (let presses = 0; presses < 5; presses += 1) {
    await page.keyboard.press("Tab");
    // After the last control, the focus passes a guard element, which moves it back a moment later.
    const within = () => warning(page).evaluate((dialog) => dialog.contains(document.activeElement));
    await until(within, "the focus stays in the dialog");
  }
  await page.keyboard.press("Escape");
  assert.ok(await warning(page).isVisible(), "the question wants an answer");
  await warning(page).getByRole("button", { name: "Stay signed in" }).click();
  await warning(page).waitFor({ state: "detached" });
  await until(async () => (await focused(page)) === "Show claims", "the focus is back where it was");
});

test("two minutes before the last end a dialog says when to sign in again, leads there, and can be closed", async () => {
  const stack = await start(LAST_END);
  const { page, context } = await window(stack);
  await signIn(page, stack);
  const announced = page.getByRole("alertdialog", { name: "Sign in again soon" });
  await announced.waitFor();
  await until(async () => (await focused(page)) === "Sign in again", "the main action has the focus");
  await announced
    .getByRole("timer")
    .filter({ hasText: /sign in again at \d+:\d\d.[AP]M, in\s(2:0\d|1:\d\d)/ })
    .waitFor();
  assert.equal(await announced.getByRole("button", { name: "Stay signed in" }).count(), 0);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `the last end, ${colorScheme}`);
    assert.ok(await announced.isVisible(), "it stays until the person answers");
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 844 });
      if (process.env.PICTURES)
        await page.screenshot({ path: `${screens}last-end-${colorScheme}-${width}.png` });
    }
  }
  await page.keyboard.press("Escape");
  await announced.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  await page.getByRole("link", { name: "This session", exact: true }).click();
  await h1(page, "This session");
  assert.equal(await announced.count(), 0, "it is announced once");
  await page.reload();
  await announced.getByRole("button", { name: "Continue for now" }).click();
  await announced.waitFor({ state: "detached" });
  await page.reload();
  const cookie = async () =>
    (await context.cookies(stack.edgeUrl)).find(({ name }) => name === "session").value;
  const before = await cookie();
  await announced.getByRole("link", { name: "Sign in again" }).click();
  await until(async () => (await cookie()) !== before, "another session has begun");
  await h1(page, "This session");
});

test("signing out from the warning ends the session", async () => {
  const stack = await start(ABOUT_TO_WARN);
  const { page, context } = await window(stack);
  await signIn(page, stack);
  await warning(page).getByRole("button", { name: "Sign out" }).click();
  await h1(page, "You are signed out.");
  assert.equal((await context.request.get(`${stack.edgeUrl}/api/auth/me`)).status(), 204);
});

test("a session that runs out says so and knows the way back, fragment included", async () => {
  const stack = await start(ABOUT_TO_END);
  const { page } = await window(stack);
  await page.goto("/account");
  await signInAtProvider(page, stack);
  await warning(page).waitFor();
  await page.evaluate(() => history.replaceState(null, "", "/account?view=all#claims"));
  const ended = page.getByRole("alertdialog", { name: "You are signed out" });
  await ended.waitFor({ timeout: 90_000 });
  await ended.getByRole("link", { name: "Sign in" }).click();
  await page.waitForURL((url) => url.href.startsWith(stack.edgeUrl) && url.pathname === "/account");
  // The next warning is already open and makes the heading behind it inert, but the heading exists.
  await page.locator("h1", { hasText: "Profile" }).waitFor();
  assert.equal(page.url(), `${stack.edgeUrl}/account?view=all#claims`);
});

for (const [what, hours] of [
  ["an hour fast", 1],
  ["an hour slow", -1],
]) {
  test(`a browser whose clock is ${what} counts down to the right moment`, async () => {
    const stack = await start(ABOUT_TO_WARN);
    const { page, context } = await window(stack);
    await moveClock(context, hours * 3_600_000);
    await signIn(page, stack);
    await warning(page)
      .getByRole("timer")
      .filter({ hasText: /in (2:0\d|1:\d\d)/ })
      .waitFor();
    await page.goto("/account/session");
    await warning(page).getByRole("button", { name: "Stay signed in" }).click();
    await warning(page).waitFor({ state: "detached" });
    const marks = page.getByRole("list", { name: "Timeline of this session" });
    await marks.getByText(/^in 2 minutes$/).waitFor();
    await marks.getByText(/^in (60 minutes|1 hour)$/).waitFor();
    assert.equal(await marks.getByText(/^in 2 hours$|^2 hours ago$/).count(), 0);
  });
}

test("without a network a banner says so, everything stays, and the page goes on by itself", async () => {
  const stack = await start();
  const { page, context, expects } = await window(stack);
  expects(/ERR_INTERNET_DISCONNECTED/);
  await signIn(page, stack);
  await details(page);
  await context.setOffline(true);
  const said = banner(page).getByRole("status");
  await said.getByText("You are offline").waitFor();
  assert.equal(
    await said.evaluate((node) => node.closest("[aria-live]")?.getAttribute("aria-live")),
    "polite",
  );
  await page.getByRole("heading", { name: "Ada Lovelace" }).waitFor();
  await page.getByRole("link", { name: "This session", exact: true }).click();
  await h1(page, "This session");
  await context.setOffline(false);
  await page.getByText("You are offline").waitFor({ state: "detached" });
  await page.getByText("What you have allowed").waitFor();
});

test("a service that is down when the page is opened: no sign-in, and the page comes when it is back", async () => {
  const stack = await start();
  const { page, expects } = await window(stack);
  expects(...DOWN);
  await signIn(page, stack);
  // This starts on an unguarded page; on a guarded page the edge itself answers with a page.
  await page.goto("/");
  await page.getByText("You are signed in.").waitFor();
  await stack.kill("session", "SIGKILL");
  try {
    await page.reload();
    await page.getByText("The service is not responding").waitFor();
    assert.equal(
      await page.getByRole("button", { name: "Try again" }).count(),
      1,
      "one message, and one way on",
    );
    assert.equal(
      await page.getByText(/whether you are signed in|You are signed in\.|You stay signed in/).count(),
      0,
      "unknown facts are not shown",
    );
    assert.equal(new URL(page.url()).pathname, "/");
  } finally {
    await stack.start("session");
  }
  await page.getByText("You are signed in.").waitFor({ timeout: 90_000 });
  await page.getByText("The service is not responding").waitFor({ state: "detached" });
});

test("a provider that is down leaves the session alone and says so in plain words", async () => {
  const stack = await start();
  const signedIn = await window(stack);
  signedIn.expects(/status of 50\d/);
  await signIn(signedIn.page, stack);
  await details(signedIn.page);
  await stack.kill("idp", "SIGKILL");
  try {
    await signedIn.page.getByRole("button", { name: "Refresh from provider" }).click();
    await signedIn.page.getByText("We could not refresh your profile").waitFor();
    assert.ok(await signedIn.page.getByRole("heading", { name: "Ada Lovelace" }).isVisible());
  } finally {
    await stack.start("idp");
  }
  await signedIn.page.getByRole("button", { name: "Refresh from provider" }).click();
  await signedIn.page.getByText("Your profile is up to date.").waitFor();
});

test("on a slow network the page has its shape at once and nothing moves when the rest arrives", async () => {
  const stack = await start();
  const { page, context } = await window(stack);
  await signIn(page, stack);
  const devtools = await context.newCDPSession(page);
  await devtools.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 300,
    downloadThroughput: 60_000,
    uploadThroughput: 30_000,
  });
  await page.addInitScript(() => {
    globalThis.shifted = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.shifted += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto("/account", { waitUntil: "commit" });
  await page.getByRole("main").getByRole("status").first().waitFor();
  await details(page);
  await page.getByText("Chrome on Linux").waitFor();
  assert.ok(
    (await page.evaluate(() => globalThis.shifted)) < 0.1,
    "layout shift as Core Web Vitals calls good",
  );
});

test("a stream that is cut comes back, and what happened meanwhile is on the page", async () => {
  const stack = await start();
  const grace = stack.accounts[1];
  const [first, second] = [await window(stack), await window(stack)];
  first.expects(...DOWN);
  second.expects(...DOWN);
  await signIn(first.page, stack, grace);
  await first.page.getByRole("link", { name: "Your sessions", exact: true }).click();
  const rows = first.page.getByRole("main").getByRole("listitem");
  await first.page.getByText("This browser").waitFor();
  const before = await rows.count();
  await stack.restart("edge", "SIGKILL");
  await signIn(second.page, stack, grace);
  await until(async () => (await rows.count()) === before + 1, "the new session appears by itself", 40_000);
});

/** Presses "Try again" once the cause is `mended`; a page that has already retried needs no press. */
async function tryAgain(page, mended) {
  const button = page.getByRole("main").getByRole("button", { name: "Try again" });
  await button.waitFor();
  await mended();
  await button.click({ timeout: 5_000 }).catch(() => {});
}

test("an answer that makes no sense is a failure with a way on, never a profile", async () => {
  const stack = await start();
  const { page, expects } = await window(stack);
  await signIn(page, stack);
  await page.route(`${RPC}GetCurrentSession`, (route) =>
    route.fulfill({
      status: 200,
      contentType: "application/grpc-web+proto",
      body: "<html>not a message</html>",
    }),
  );
  await page.goto("/account");
  await page.getByText("We could not load the details of your session").waitFor();
  await tryAgain(page, () => page.unroute(`${RPC}GetCurrentSession`));
  await details(page);
  await page.route("**/api/auth/me*", (route) =>
    route.fulfill({ status: 200, contentType: "text/html", body: "<html>a captive portal</html>" }),
  );
  await page.goto("/account");
  await h1(page, "We cannot reach your account");
  await tryAgain(page, () => page.unroute("**/api/auth/me*"));
  await h1(page, "Profile");
  expects();
});

test("a page that breaks says so, keeps the way out, and the other pages stand", async () => {
  const stack = await start();
  const { page, expects } = await window(stack);
  expects(/Invalid time value|RangeError/);
  await signIn(page, stack);
  await absurdAnswer(page, { times: 1 });
  await page.goto("/account");
  await h1(page, "Something went wrong on this page.");
  await page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await page.getByText("This browser").waitFor();
  await page.getByRole("link", { name: "Profile", exact: true }).click();
  await h1(page, "Profile");
});

test("code that is gone after a new release: the page says so and loading again mends it", async () => {
  const stack = await start();
  const { page, expects } = await window(stack);
  expects(/ERR_FAILED|dynamically imported module/);
  await signIn(page, stack);
  await page.goto("/");
  await page.getByText("You are signed in.").waitFor();
  await page.route("**/assets/Account-*.js", (route) => route.abort());
  await page.getByRole("link", { name: "Go to your account" }).click();
  await h1(page, "Something went wrong on this page.");
  await page.unroute("**/assets/Account-*.js");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await h1(page, "Profile");
});

test("back and forward lead where one was, scrolled as it was, with the heading in focus on the way", async () => {
  const stack = await start();
  const { page } = await window(stack, { viewport: { width: 390, height: 500 } });
  await signIn(page, stack);
  await page.goto("/account");
  await details(page);
  await page.getByRole("button", { name: "Show claims" }).click();
  await page.evaluate(() => window.scrollTo(0, 400));
  await page.getByRole("link", { name: "See all your sessions" }).evaluate((link) => link.click());
  await h1(page, "Your sessions");
  await until(async () => (await focused(page)) === "Your sessions", "the heading has the focus");
  assert.equal(await page.evaluate(() => window.scrollY), 0, "a new page starts at its top");
  await page.goBack();
  await h1(page, "Profile");
  await until(async () => (await page.evaluate(() => window.scrollY)) > 200, "the old place is there again");
  await page.goForward();
  await h1(page, "Your sessions");
  await page.goBack();
  await h1(page, "Profile");
});

test("two browsers: what one ends, the other knows at once, and says from where", async (t) => {
  const stack = await start();
  const grace = stack.accounts[1];
  const [first, second] = [await window(stack), await window(stack, { userAgent: FIREFOX })];
  await signIn(first.page, stack, grace);
  await first.page.getByRole("link", { name: "Your sessions", exact: true }).click();
  await first.page.getByText("This browser").waitFor();
  await signIn(second.page, stack, grace);
  await details(second.page);
  const row = first.page.getByRole("listitem").filter({ hasText: "Firefox on Windows" });
  await row.waitFor({ timeout: 90_000 });
  const dialog = second.page.getByRole("alertdialog", { name: "You are signed out" });
  const begun = performance.now();
  await row
    .getByRole("button", { name: /^Sign out Firefox on Windows, started \w+ \d+, \d{4}, \d+:/ })
    .click();
  await dialog.waitFor();
  t.diagnostic(`the other browser reacted after ${Math.round(performance.now() - begun)} ms`);
  await dialog.getByText("This session was signed out from another browser.").waitFor();
  await row.getByText("Firefox on Windows is signed out.").waitFor();
  assert.equal(await row.getByRole("button").count(), 0);
});

test("everywhere else: asked first, with the keyboard alone, and every other browser follows", async () => {
  const stack = await start();
  const [first, ...others] = [await window(stack), await window(stack), await window(stack)];
  for (const { page } of [first, ...others]) await signIn(page, stack);
  for (const { page } of others) await details(page);
  const { page } = first;
  await page.goto("/account/sessions");
  await page.getByText("In every session: Chrome on Linux · 127.0.0.1").waitFor();
  const everywhere = page.getByRole("main").getByRole("button", { name: "Sign out everywhere else" });
  const top = async (locator) => (await locator.boundingBox()).y;
  assert.ok((await top(everywhere)) < (await top(page.getByText("This browser"))), "it is above the rows");
  await everywhere.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("alertdialog", { name: "Sign out everywhere else?" });
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await until(
    async () => (await focused(page)) === "Sign out everywhere else",
    "the focus is back on the button",
  );
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  const isMainAction = () =>
    dialog.evaluate(
      (node) =>
        node.contains(document.activeElement) &&
        document.activeElement.textContent === "Sign out everywhere else",
    );
  await until(isMainAction, "the main action has the focus");
  await page.keyboard.press("Enter");
  await page.getByText(/sessions? (is|are) signed out\./).waitFor();
  await until(
    async () => /^\d+ sessions? (is|are) signed out\.$/.test(await focused(page)),
    "the focus is on the outcome",
  );
  await page.getByText("You are not signed in anywhere else.").waitFor();
  for (const other of others)
    await other.page.getByRole("alertdialog", { name: "You are signed out" }).waitFor();
});

test("a session ended with the keyboard: its place says so, in view and in focus, and the next row follows", async () => {
  const stack = await start();
  const { page, expects } = await window(stack, { viewport: { width: 390, height: 500 } });
  await signIn(page, stack);
  await manySessions(page, 12);
  await page.goto("/account/sessions");
  await page.getByText("This browser").waitFor();
  const buttons = page.getByRole("listitem").getByRole("button", { name: /^Sign out / });
  const labels = await buttons.evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  assert.equal(new Set(labels).size, 13, `no two labels are the same: ${labels}`);

  expects(/status of 500/);
  await page.route(`${RPC}EndMySession`, (route) => route.fulfill({ status: 500, body: "" }));
  await buttons.nth(8).focus();
  await page.keyboard.press("Enter");
  const failure = page.getByText("We could not sign out");
  await failure.waitFor();
  const isInView = (locator) =>
    locator.evaluate((node) => {
      const { top, bottom } = node.getBoundingClientRect();
      return top >= 0 && bottom <= window.innerHeight;
    });
  assert.ok(await isInView(failure), "what failed is in view");
  const active = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await until(async () => (await active()) === labels[8], "the button keeps the focus");

  await page.unroute(`${RPC}EndMySession`);
  await done(page, "EndMySession");
  await page.keyboard.press("Enter");
  const outcome = page.getByText("Chrome on Windows is signed out.");
  await outcome.waitFor();
  await until(async () => /is signed out/.test(await focused(page)), "the outcome has the focus");
  assert.ok(await isInView(outcome), "the outcome is in view");
  await assertAccessible(page, "an ended session");
  await page.keyboard.press("Tab");
  assert.equal(await active(), labels[9], "the next row follows");
  await page.keyboard.press("Enter");
  await until(async () => (await outcome.count()) === 2, "the next one is ended too");
  await page.keyboard.press("Shift+Tab");
  assert.equal(await active(), labels[7], "and the one before is a step back");
});

test("a copied cookie is reported after the next sign-in, with a link to the sessions, until it is dismissed", async () => {
  const stack = await start();
  const { page } = await window(stack);
  await afterTheft(page);
  await signIn(page, stack);
  const told = page.getByRole("heading", { level: 2, name: "We ended one of your sessions to protect you" });
  await told.waitFor();
  assert.ok(await page.evaluate(() => document.activeElement === document.body), "it takes no focus");
  await page.getByRole("status").getByRole("link", { name: "See all your sessions" }).click();
  await h1(page, "Your sessions");
  await told.waitFor();
  const above = (notice, list) =>
    notice.boundingBox().then(async ({ y }) => y < (await list.boundingBox()).y);
  assert.ok(await above(told, page.getByRole("main").getByRole("list").first()), "it stands above the list");
  await page.getByRole("button", { name: "Dismiss" }).focus();
  await page.keyboard.press("Enter");
  await told.waitFor({ state: "detached" });
  assert.equal(await focused(page), "Your sessions");
  await page.reload();
  await page.getByText("This browser").waitFor();
  assert.equal(await told.count(), 0);
  await page.getByRole("link", { name: "Profile", exact: true }).click();
  await details(page);
  assert.equal(await told.count(), 0);
});

test("every page can be walked with the keyboard, and the focus is always to be seen", async () => {
  const stack = await start();
  const { page } = await window(stack);
  await signIn(page, stack);
  for (const [path, heading, names] of [
    ["/", "Hello, Ada Lovelace.", ["Go to your account"]],
    ["/account/sessions", "Your sessions", ["Your sessions", /^Sign out Chrome on Linux, started /]],
    ["/account/session", "This session", ["Stay signed in"]],
    ["/signed-out", "You are still signed in.", ["Sign out", "Go to your account"]],
    ["/nowhere", "There is nothing at this address.", ["Go to the start page"]],
  ]) {
    await page.goto(path);
    await h1(page, heading);
    if (path.startsWith("/account"))
      await page
        .getByText(/This browser|What you have allowed/)
        .first()
        .waitFor();
    const reached = new Set();
    for (let presses = 0; presses < 16; presses += 1) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return null;
        const seen = element.closest("label") ?? element;
        const { outlineStyle, outlineWidth } = getComputedStyle(seen);
        const name = element.getAttribute("aria-label") ?? element.textContent?.trim();
        return { name, visible: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2 };
      });
      if (!at) continue;
      assert.ok(at.visible, `${path}: the focus on "${at.name}" can be seen`);
      reached.add(at.name);
    }
    for (const name of names) {
      const isReached = [...reached].some((one) => (name instanceof RegExp ? name.test(one) : one === name));
      assert.ok(isReached, `${path}: ${name} among ${[...reached]}`);
    }
  }
});

test("the language can be changed, stays chosen, and turns the page around", async () => {
  const stack = await start();
  const { page } = await window(stack);
  await page.goto("/");
  const direction = () => page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]);
  assert.deepEqual(await direction(), ["en", "ltr"]);
  await page.getByRole("list", { name: "Language" }).getByRole("button", { name: "العربية" }).click();
  await h1(page, "أهلًا بك.");
  assert.deepEqual(await direction(), ["ar", "rtl"]);
  const { brand, action } = await page.evaluate(() => ({
    brand: document.querySelector("header a[href='/']")?.getBoundingClientRect().x ?? 0,
    action: document.querySelector("header a[href^='/api']")?.getBoundingClientRect().x ?? 0,
  }));
  assert.ok(brand > action, "the page begins on the right");
  await page.goto("/signed-out");
  await h1(page, "لقد سجّلت الخروج.");
  await page.getByRole("button", { name: "English" }).click();
  await h1(page, "You are signed out.");
});

test("words that do not come leave the page in English", async () => {
  const stack = await start();
  const { page, expects } = await window(stack, { locale: "ar" });
  expects(/ERR_FAILED/);
  await page.route("**/assets/ar-*.js", (route) => route.abort());
  await page.goto("/");
  await h1(page, "Welcome.");
});

test("a link from outside with a fragment comes back to it where the app guards its own pages", async () => {
  // A server never receives a fragment: its guard restores path and query, the app's guard also the fragment.
  const stack = await start({ routes: UNGUARDED });
  const { page } = await window(stack);
  await page.goto("/account/session?from=mail#scopes");
  await signInAtProvider(page, stack);
  await h1(page, "This session");
  assert.equal(page.url(), `${stack.edgeUrl}/account/session?from=mail#scopes`);
});
