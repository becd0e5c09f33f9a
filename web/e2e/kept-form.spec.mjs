// A form sent with an expired session, in a real browser: it returns unchanged after sign-in, only to its author.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test as runTest } from "node:test";
import { assertAccessible, browserTests, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const FORM = `<!doctype html><html lang="en"><title>Order</title><h1>New order</h1>
<form method="post" action="/orders/new?draft=1"><input type="hidden" name="token" value="a&quot;b&lt;c">
<label>Title <input name="title"></label><label>Text <textarea name="text"></textarea></label>
<label><input type="checkbox" name="tag" value="1" checked>one</label><label><input type="checkbox" name="tag" value="2" checked>two</label>
<button>Order</button></form>
<form method="post" action="/orders/new" enctype="multipart/form-data"><input type="hidden" name="a" value="b"><button>Upload</button></form>`;

const posts = [];
let application;
let folder;
let routes;

before(async () => {
  application = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const { method, url, headers } = request;
      if (method === "POST")
        posts.push({ url, kind: headers["content-type"], body: Buffer.concat(parts).toString() });
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end(
        method === "POST" ? "<!doctype html><html lang=en><title>Done</title><h1>Ordered</h1>" : FORM,
      );
    });
  });
  await new Promise((resolve) => application.listen(0, "127.0.0.1", resolve));
  folder = mkdtempSync(join(tmpdir(), "vestibule-forms-"));
  routes = join(folder, "routes.toml");
  const upstream = `http://127.0.0.1:${application.address().port}`;
  writeFileSync(
    routes,
    `[[route]]\npath = "/orders/*"\nguard = "page"\nupstream = "${upstream}"\nkeep_form = true\n`,
  );
});

after(() => {
  application.close();
  rmSync(folder, { recursive: true, force: true });
});

const h1 = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();

/** Removes everything from the browser except what an expired session leaves behind. */
async function expire(context, { alsoAtProvider = false } = {}) {
  if (!alsoAtProvider) return context.clearCookies({ name: "session" });
  const cookies = await context.cookies();
  await context.clearCookies();
  await context.addCookies(cookies.filter(({ name }) => name === "session_person"));
}

async function fillIn(page) {
  await page.getByLabel("Title").fill('Größe "5" & <b>名前</b>');
  await page.getByLabel("Text").fill("one\ntwo\n\n");
}

async function atTheForm(options) {
  const stack = await start({ routes });
  const opened = await window(stack, options);
  opened.expects(/status of 40[134]/);
  await opened.page.goto("/orders/new");
  await signInAtProvider(opened.page, stack);
  await h1(opened.page, "New order");
  posts.length = 0;
  return { stack, ...opened };
}

test("a form that meets an expired session goes out as it was, once, by a press on “Send again”", async () => {
  const { context, page } = await atTheForm();
  await fillIn(page);
  await page.getByRole("button", { name: "Order" }).click();
  await h1(page, "Ordered");
  const [alive] = posts;

  await page.goto("/orders/new");
  await fillIn(page);
  await expire(context);
  await page.getByRole("button", { name: "Order" }).click();
  await h1(page, "Send your form again?");
  await assertAccessible(page, "a form offered again");
  assert.equal(posts.length, 1, "nothing is sent by itself");
  assert.deepEqual(await page.getByRole("listitem").allTextContents(), ["token", "title", "text", "tag"]);
  await page.getByRole("button", { name: "Send again" }).click();
  await h1(page, "Ordered");
  assert.deepEqual(posts, [alive, alive]);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("vestibule.form")), null);

  await page.goto("/api/auth/form");
  await page.getByText("No form is waiting here.").waitFor();
});

test("another user who signs in is not offered it, and it is gone", async () => {
  const { stack, context, page } = await atTheForm();
  await fillIn(page);
  await expire(context, { alsoAtProvider: true });
  await page.getByRole("button", { name: "Order" }).click();
  await signInAtProvider(page, stack, stack.accounts[1]);
  await h1(page, "This form is not from your account");
  await assertAccessible(page, "another user's form");
  assert.equal((await page.content()).includes("Größe"), false);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("vestibule.form")), null);
  assert.equal(posts.length, 0);
});

test("a form with files is refused, and says that it cannot be kept", async () => {
  const { context, page } = await atTheForm();
  await expire(context);
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByText("A form with files, or a very long one, cannot be kept").waitFor();
  assert.equal(posts.length, 0);
});

test("without scripts nothing is kept and nothing is lost that was not lost before", async () => {
  const { stack, context, page } = await atTheForm({ javaScriptEnabled: false });
  await expire(context);
  await page.getByRole("button", { name: "Order" }).click();
  await h1(page, "You are signed out");
  const link = page.getByRole("link", { name: "Sign in" });
  assert.equal(await link.getAttribute("target"), "_blank");
  assert.ok((await link.getAttribute("href")).startsWith(stack.edgeUrl));
  await page.goto("/api/auth/form");
  await h1(page, "Nothing to send");
  assert.equal(posts.length, 0);
});

test("the pages are in the visitor's language, and from right to left where it is read so", async () => {
  for (const [locale, direction, title, button] of [
    ["ar", "rtl", "هل تريد إرسال نموذجك مرة أخرى؟", "الإرسال مرة أخرى"],
    ["ja", "ltr", "フォームをもう一度送信しますか？", "もう一度送信"],
  ]) {
    const { context, page } = await atTheForm({ locale });
    await fillIn(page);
    await expire(context);
    await page.getByRole("button", { name: "Order" }).click();
    await h1(page, title);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).direction), direction);
    await assertAccessible(page, `a form offered again in ${locale}`);
    await page.getByRole("button", { name: button }).click();
    await h1(page, "Ordered");
    assert.equal(posts.length, 1);
  }
});
