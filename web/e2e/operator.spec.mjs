// The operators' pages on the real stack: Grace is an operator, Ada is not.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import { browserTests, signIn, signInAtProvider, until } from "./support.mjs";

const test = (name, body) => runTest(name, { timeout: 240_000 }, body);
const { stack: start, window } = browserTests();
const OPTIONS = { sessionEnv: { SESSION_OPERATOR_SEARCH: "true" } };
const PURPOSE = "Ticket 4711";
const FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0";

const ada = (stack) => stack.accounts.find(({ name }) => name.startsWith("Ada"));
const grace = (stack) => stack.accounts.find(({ name }) => name.startsWith("Grace"));

async function signedIn(stack, account, options) {
  const opened = await window(stack, options);
  await signIn(opened.page, stack, account);
  return opened;
}

/** Grace at a page for operators, with a purpose. */
async function operator(stack, path = "/operator") {
  const opened = await signedIn(stack, grace(stack));
  await opened.page.goto(path);
  await opened.page.getByLabel("Purpose").fill(PURPOSE);
  await opened.page.getByRole("button", { name: "Continue" }).click();
  return opened;
}

async function search(page, kind, value) {
  await page.getByLabel("Search by").selectOption({ label: kind });
  if (value) await page.getByLabel("Search for").fill(value);
  await page.getByRole("button", { name: "Search", exact: true }).click();
}

/** Presses Tab until the focused element has this text or label. */
async function tabTo(page, name) {
  const reached = () =>
    page.evaluate((wanted) => {
      const { activeElement: node } = document;
      const names = [node?.textContent, node?.getAttribute("aria-label"), node?.labels?.[0]?.textContent];
      return names.some((one) => one?.trim().startsWith(wanted));
    }, name);
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press("Tab");
    if (await reached()) return;
  }
  assert.fail(`the keyboard does not reach ${name}`);
}

const endedDialog = (page) => page.getByRole("alertdialog", { name: "You are signed out" });

test("by keyboard alone an operator finds a person, ends the sessions and leaves a message, shown once", async () => {
  const stack = await start(OPTIONS);
  const person = await signedIn(stack, ada(stack), { userAgent: FIREFOX });
  await person.page.getByText("Signed out at the latest").waitFor();
  const { page } = await signedIn(stack, grace(stack));
  assert.equal(
    await page.getByRole("link", { name: "Operator console" }).count(),
    0,
    "nothing was asked yet",
  );
  await page.goto("/operator");
  const keys = page.keyboard;
  await page.getByLabel("Purpose").waitFor();
  await tabTo(page, "Purpose");
  await keys.type(PURPOSE);
  await keys.press("Enter");
  await page.getByRole("link", { name: "Operator console" }).waitFor();
  await tabTo(page, "Search by");
  await keys.type("Name");
  await tabTo(page, "Search for");
  await keys.type("ADA lovelace");
  await keys.press("Enter");
  await page.getByRole("row", { name: /Ada Lovelace.*Firefox on Windows/ }).waitFor();
  assert.doesNotMatch(page.url(), /4711/, "the purpose is not in the address");
  await page.reload();
  await page.getByRole("row", { name: /Ada Lovelace/ }).waitFor();
  await tabTo(page, "Ada Lovelace");
  await keys.press("Enter");
  await page.getByText("en-GB").waitFor();
  await tabTo(page, "End all sessions of this person");
  await keys.press("Enter");
  const asked = page.getByRole("alertdialog", { name: "End all sessions of Ada Lovelace?" });
  await asked.getByText("1 session ends.").waitFor();
  await until(() => asked.getByLabel("Reason").evaluate((node) => node === document.activeElement), "focus");
  await tabTo(page, "Message to the person");
  await keys.type("Please call +1 555 <b>0100</b>");
  await tabTo(page, "End sessions");
  await keys.press("Enter");
  await page.getByText("1 session ended.").waitFor();
  await page.getByText("This person is not signed in.").waitFor();
  await until(
    () => page.evaluate(() => document.activeElement?.textContent === "1 session ended."),
    "the outcome has the focus",
  );

  await endedDialog(person.page).getByText("The operator of this service ended this session.").waitFor();
  await endedDialog(person.page).getByRole("link", { name: "Sign in" }).click();
  await person.page
    .getByRole("heading", { name: "Profile", level: 1 })
    .or(person.page.getByLabel("E-mail"))
    .waitFor();
  if (person.page.url().startsWith(stack.issuer)) await signInAtProvider(person.page, stack, ada(stack));
  const notice = person.page.getByRole("heading", { name: /^An administrator signed you out on/ });
  await notice.waitFor();
  await person.page.getByText("Please call +1 555 <b>0100</b>").waitFor();
  await person.page.getByRole("button", { name: "Dismiss" }).click();
  await notice.waitFor({ state: "detached" });
  await person.page.reload();
  await person.page.getByText("Signed out at the latest").waitFor();
  assert.equal(await notice.count(), 0);

  await page.reload();
  await page.getByText("An operator ended the session").first().waitFor();
  await page.getByText(PURPOSE).nth(1).waitFor();
});

test("a person without the right reads so, and sees no link", async () => {
  const stack = await start(OPTIONS);
  const { page } = await signedIn(stack, ada(stack));
  await page.goto("/operator");
  await page.getByRole("heading", { name: "You may not use the operator console." }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Operator console" }).count(), 0);
  await page.getByRole("link", { name: "Back to your account" }).click();
  await page.getByRole("heading", { name: "Profile", level: 1 }).waitFor();
});

test("ending everyone needs the provider's name, and spares the operator until it is included", async () => {
  const stack = await start(OPTIONS);
  const others = [await signedIn(stack, ada(stack)), await signedIn(stack, ada(stack))];
  for (const { page } of others) await page.getByText("Signed out at the latest").waitFor();
  const { page } = await operator(stack);
  const ask = async () => {
    await search(page, "Everyone");
    await page.getByRole("button", { name: "End all these sessions" }).click();
    return page.getByRole("alertdialog");
  };
  let asked = await ask();
  await asked.getByRole("button", { name: "End sessions" }).click();
  assert.ok(await asked.isVisible(), "not without the name");
  await asked.getByLabel(/provider's name/).fill(stack.issuer);
  await asked.getByRole("button", { name: "End sessions" }).click();
  await page.getByText(/sessions? ended\./).waitFor();
  for (const other of others) await endedDialog(other.page).waitFor();
  await page.getByText("1 session", { exact: true }).waitFor();
  asked = await ask();
  await asked.getByLabel(/provider's name/).fill(stack.issuer);
  await asked.getByLabel("End my own session as well").check();
  await asked.getByRole("button", { name: "End sessions" }).click();
  await endedDialog(page).waitFor();
});

test("the live view shows sign-ins, endings with their cause, and failed sign-ins", async () => {
  const stack = await start(OPTIONS);
  const { page } = await operator(stack, "/operator/activity");
  await page.getByText("Connected").waitFor();
  const person = await signedIn(stack, ada(stack));
  const events = page.getByRole("list", { name: "Latest events" }).getByRole("listitem");
  await events.filter({ hasText: "Signed in" }).first().waitFor();
  await person.page.getByRole("button", { name: "Sign out" }).click();
  await events.filter({ hasText: "The person signed out" }).first().waitFor();
  await page.getByText("sign-ins 1, endings 1").waitFor();
  const broken = await window(stack);
  broken.expects(/status of 4\d\d/);
  await broken.page.goto("/api/auth/callback?code=x&state=y");
  await page.getByText("The browser had no pending sign-in").waitFor({ timeout: 90_000 });
  await events.first().getByRole("link").click();
  await page.getByRole("heading", { name: "Recent endings" }).waitFor();
});
