// The two kinds of cookies as a browser stores them: over plain http on loopback, over TLS, with a posted response.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import { browserTests, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

// The stored expiry against the settings; on a busy machine a page takes a while.
const PATIENCE_SECS = 120;
const ROLLING_SECS = 86_400;
const TRANSACTION_SECS = 3_600;

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();

/** The cookies that the browser stores for the edge's host, from the DevTools protocol. */
async function kept(context, page) {
  const devtools = await context.newCDPSession(page);
  const { cookies } = await devtools.send("Network.getAllCookies");
  await devtools.detach();
  return cookies.filter(({ domain }) => domain.replace(/^\./, "") === "localhost");
}

function assertEnds(cookie, seconds) {
  const left = cookie.expires - Date.now() / 1000;
  assert.ok(left <= seconds + 1 && left > seconds - PATIENCE_SECS, `${cookie.name} ends in ${left} s`);
}

const SETTINGS = [
  { what: "http on loopback", options: {}, prefix: "", secure: false, pending: "Lax" },
  { what: "TLS", options: { tls: true }, prefix: "__Host-", secure: true, pending: "Lax" },
  {
    what: "TLS with a posted answer",
    options: { tls: true, edgeEnv: { OIDC_RESPONSE_MODE: "form_post" } },
    prefix: "__Host-",
    secure: true,
    pending: "None",
  },
];

for (const { what, options, prefix, secure, pending } of SETTINGS) {
  test(`over ${what} both cookies are what they should be, and gone when they should be`, async () => {
    const stack = await start({ host: "localhost", ...options });
    const { context, page } = await window(stack, { ignoreHTTPSErrors: true });
    const common = { path: "/", httpOnly: true, domain: "localhost", session: false, priority: "Medium" };
    const shape = ({ path, httpOnly, domain, session, priority, secure, sameSite }) => ({
      path,
      httpOnly,
      domain, // without a leading dot: for this host only
      session,
      priority,
      secure,
      sameSite,
    });

    await page.goto("/account");
    await page.waitForURL((url) => url.href.startsWith(stack.issuer));
    const [transaction, ...others] = await kept(context, page);
    assert.deepEqual(others, []);
    assert.match(transaction.name, new RegExp(`^${prefix}session_login_[\\w-]{12}$`));
    assert.deepEqual(shape(transaction), {
      ...common,
      secure: secure || pending === "None",
      sameSite: pending,
    });
    assertEnds(transaction, TRANSACTION_SECS);

    await signInAtProvider(page, stack);
    await h1(page, "Profile");
    const [session, ...more] = await kept(context, page);
    assert.deepEqual(more, [], "the pending sign-in is cleared");
    assert.equal(session.name, `${prefix}session`);
    assert.match(session.value, /^[0-9a-f]{32}\.[\w-]{43}$/);
    assert.deepEqual(shape(session), { ...common, secure, sameSite: "Lax" });
    assertEnds(session, ROLLING_SECS);
    assert.equal(await page.evaluate(() => document.cookie), "", "no script sees it");

    await page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
    await h1(page, "You are signed out.");
    assert.deepEqual(await kept(context, page), [], "signing out leaves nothing behind");
  });
}
