// Rotating session cookies in a browser without device binding: the user notices nothing until a copy is used.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test as runTest } from "node:test";
import { Clocks } from "../../dev/chaos/clocks.mjs";
import { browserTests, signIn, until } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const ROTATION_SECS = 120; // the smallest allowed value
const GRACE_SECS = 60; // how long an older cookie is valid after the first use of the new one
const PROCESSES = ["idp", "session", "edge"];

const folder = mkdtempSync(join(tmpdir(), "vestibule-clocks-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const clocks = new Clocks(folder);

/** A stack whose clock is ahead of the browsers; a browser under libfaketime needs minutes for a page. */
async function ahead() {
  const stack = await start({
    edgeEnv: { EDGE_COOKIE_ROTATION: String(ROTATION_SECS) },
    env: Object.fromEntries(PROCESSES.map((name) => [name, clocks.environmentOf(name)])),
  });
  let secs = 0;
  const pass = (more) => {
    secs += more;
    for (const name of PROCESSES) clocks.set(name, secs * 1_000);
  };
  return { stack, pass };
}

const profile = (page) => page.getByRole("heading", { level: 1, name: "Profile" }).waitFor();

test("a copied cookie ends the session for both, the open page says why, and so does the next sign-in", async () => {
  const { stack, pass } = await ahead();
  const [owner, thief] = [await window(stack), await window(stack)];
  const cookie = async () =>
    (await owner.context.cookies(stack.edgeUrl)).find(({ name }) => name === "session");
  await signIn(owner.page, stack);
  const copied = await cookie();
  await thief.context.addCookies([copied]);
  await thief.page.goto("/account");
  await profile(thief.page);
  await thief.page.goto("about:blank");

  pass(ROTATION_SECS);
  await owner.page.reload();
  await until(async () => (await cookie()).value !== copied.value, "the edge sets the cookie again");
  pass(ROTATION_SECS / 2);
  await owner.page.reload();
  await profile(owner.page);
  pass(GRACE_SECS);
  await owner.page.reload();
  await profile(owner.page);

  await thief.page.goto("/account");
  assert.ok(thief.page.url().startsWith(stack.issuer), thief.page.url());
  const over = owner.page.getByRole("alertdialog");
  await over.getByText("used in two places").waitFor();
  await over.getByRole("link", { name: "Sign in" }).click();
  await profile(owner.page);
  await owner.page
    .getByRole("heading", { level: 2, name: "We ended one of your sessions to protect you" })
    .waitFor();
  await owner.page.getByRole("status").getByRole("link", { name: "See all your sessions" }).click();
  await owner.page.getByText("This browser").waitFor();
  assert.equal(
    await owner.page.getByRole("main").getByRole("listitem").count(),
    1,
    "no other user is signed in",
  );
});
