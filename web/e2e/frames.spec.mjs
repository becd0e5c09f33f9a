// An application in frames of other sites, in a real browser that blocks third-party cookies.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test as runTest } from "node:test";
import { fileURLToPath } from "node:url";
import { makeCertificate } from "../../dev/lib/certificate.mjs";
import { assertAccessible, openWindow, startBrowser, startProduct } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const screens = fileURLToPath(new URL("../test-results/screens/", import.meta.url));

const page = (title, rest = "") =>
  `<!doctype html><html lang="en"><title>${title}</title><h1>${title}</h1>${rest}`;
const SAVE = '<form method="post" action="/orders/save"><button>Save</button></form>';

const cleanUp = [];
let browser;
let stack;
let sites;

/** Starts a server on a free port of loopback, and returns the port. */
async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return server.address().port;
}

before(async () => {
  const folder = mkdtempSync(join(tmpdir(), "vestibule-frames-"));
  cleanUp.push(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(screens, { recursive: true });
  const application = http.createServer((request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.setHeader("set-cookie", "plain=1; Path=/; Secure; SameSite=None");
    response.end(request.method === "POST" ? page("Saved") : page("Orders", SAVE));
  });
  const routes = join(folder, "routes.toml");
  const upstream = `http://127.0.0.1:${await listen(application)}`;
  writeFileSync(routes, `[[route]]\npath = "/orders/*"\nguard = "page"\nupstream = "${upstream}"\n`);

  const { certificate, key } = makeCertificate(folder);
  const tls = { cert: readFileSync(certificate), key: readFileSync(key) };
  // Its own form posts to the application, as an attack would.
  const portal = https.createServer(tls, (_request, response) => {
    const to = `${stack.edgeUrl}/orders/new`;
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.setHeader("cross-origin-opener-policy", "same-origin-allow-popups");
    response.end(
      page(
        "Portal",
        `<iframe name="orders" title="Orders" width="600" height="500" src="${to}"></iframe>
         <form method="post" target="orders" action="${stack.edgeUrl}/orders/save"><button>Attack</button></form>`,
      ),
    );
  });
  const port = await listen(portal);
  const site = (name) => `https://${name}.example:${port}`;
  sites = { portal: site("portal"), partner: site("partner"), stranger: site("stranger") };
  stack = await startProduct({
    host: "localhost",
    tls: true,
    routes,
    edgeEnv: { EDGE_FRAME_ANCESTORS: `${sites.portal},${sites.partner}` },
  });
  cleanUp.push(() => stack.stop());
  browser = await startBrowser({
    isWhole: true,
    args: ["--host-resolver-rules=MAP *.example 127.0.0.1", "--test-third-party-cookie-phaseout"],
  });
  cleanUp.push(() => browser.close());
});

after(async () => {
  for (const clean of cleanUp.reverse()) await clean();
});

async function openContext() {
  const { context, page } = await openWindow(browser, stack, { ignoreHTTPSErrors: true });
  cleanUp.push(() => context.close().catch(() => {}));
  return { context, page };
}

const frameOf = (page) => page.frameLocator("iframe");
const heading = (page, name) => frameOf(page).getByRole("heading", { level: 1, name }).waitFor();

/** Presses "Sign in" in the frame. Returns the window that opens. */
async function openPopUp(page) {
  const opened = page.waitForEvent("popup");
  await frameOf(page).getByRole("button", { name: "Sign in" }).click();
  return opened;
}

/** Signs in at the provider's page in the window, and waits until the window closes. */
async function signInInPopUp(popUp) {
  const closed = popUp.waitForEvent("close");
  await popUp.waitForURL((url) => url.href.startsWith(stack.issuer));
  const [{ email, password }] = stack.accounts;
  await popUp.getByLabel("E-mail").fill(email);
  await popUp.getByLabel("Password").fill(password);
  await popUp.getByRole("button", { name: "Sign in", exact: true }).click();
  const agree = popUp.getByRole("button", { name: "Continue", exact: true }).click();
  await Promise.race([
    closed,
    agree.then(
      () => closed,
      () => closed,
    ),
  ]);
}

test("a user signs in in a pop-up window, and each embedding site has its own session", async () => {
  const { context, page } = await openContext();
  await page.goto(sites.portal);
  await heading(page, "Sign in first");
  await signInInPopUp(await openPopUp(page));
  await heading(page, "Orders");
  await frameOf(page).getByRole("button", { name: "Save" }).click();
  await heading(page, "Saved");

  // Another site, and a window of the application, have no session.
  await page.goto(sites.partner);
  await heading(page, "Sign in first");
  const direct = await context.newPage();
  const answer = direct.waitForResponse((response) => response.url().endsWith("/api/auth/me"));
  await direct.goto(`${stack.edgeUrl}/api/auth/me`).catch(() => {}); // an answer without content keeps the page
  assert.equal((await answer).status(), 204);

  // The provider knows the user, so its page does not show.
  const popUp = await openPopUp(page);
  if (!popUp.isClosed()) await popUp.waitForEvent("close");
  await heading(page, "Orders");
  await page.goto(sites.portal);
  await heading(page, "Orders");
  const cookies = await context.cookies();
  assert.ok(!cookies.some(({ name }) => name === "plain"), "the browser blocks third-party cookies");
  const sessions = cookies.filter(({ name }) => name === "__Host-session");
  assert.deepEqual(
    sessions.map(({ partitionKey, sameSite, secure }) => [partitionKey, sameSite, secure]).sort(),
    [
      ["https://partner.example", "None", true],
      ["https://portal.example", "None", true],
    ],
  );
  assert.notEqual(sessions[0].value, sessions[1].value);
});

test("a form of the embedding site is refused, although the browser sends the frame's cookie", async () => {
  const { page } = await openContext();
  await page.goto(sites.portal);
  await signInInPopUp(await openPopUp(page));
  await heading(page, "Orders");
  await page.getByRole("button", { name: "Attack" }).click();
  await heading(page, "This did not come from our pages");
});

test("a site that no setting lists cannot show the page", async () => {
  const { page } = await openContext();
  const refused = page.waitForEvent("console", (message) => /frame-ancestors/.test(message.text()));
  await page.goto(sites.stranger);
  await refused;
  assert.equal(await frameOf(page).getByRole("button").count(), 0);
});

test("the page in the frame is accessible in both themes, and says when no window opened", async () => {
  const { page } = await openContext();
  await page.goto(sites.portal);
  await heading(page, "Sign in first");
  const [frame] = page.frames().filter((frame) => frame.url().startsWith(stack.edgeUrl));
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${screens}frame-sign-in-${colorScheme}.png` });
    await assertAccessible(frame, `sign-in in a frame, ${colorScheme}`);
  }
  await frame.evaluate(() => {
    window.open = () => null;
  });
  await frameOf(page).getByRole("button", { name: "Sign in" }).click();
  await frameOf(page).getByRole("alert").getByText("Allow pop-up windows").waitFor();
  await page.screenshot({ path: `${screens}frame-no-window-dark.png` });
  await assertAccessible(frame, "no window opened");
});

test("a window without its frame says what to do", async () => {
  const { context, page } = await openContext();
  await page.goto(sites.portal);
  await heading(page, "Sign in first");
  const popUp = await openPopUp(page);
  await popUp.waitForURL((url) => url.href.startsWith(stack.issuer));
  const alone = await context.newPage();
  await alone.goto(popUp.url());
  await alone.getByLabel("E-mail").fill(stack.accounts[0].email);
  await alone.getByLabel("Password").fill(stack.accounts[0].password);
  await alone.getByRole("button", { name: "Sign in", exact: true }).click();
  await alone.getByText("it has lost its connection").waitFor();
  await alone.screenshot({ path: `${screens}frame-window-alone.png` });
  await assertAccessible(alone, "a window without its frame");
  await heading(page, "Sign in first");
});
