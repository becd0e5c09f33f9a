// Visits to a guarded page other than a plain click: a service worker, restored tabs, a frame.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test as runTest } from "node:test";
import { browserTests, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const WORKER = `self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => { if (event.request.mode === "navigate") event.respondWith(fetch(event.request)); });`;
const page = (title, body = "") =>
  `<!doctype html><html lang="en"><title>${title}</title><link rel="icon" href="data:,"><h1>${title}</h1>${body}`;
const PAGES = {
  "/start": page("Start", `<script>navigator.serviceWorker.register("/worker.js")</script>`),
  "/framing": page("Framing", `<iframe title="part" src="/app/part" width="600" height="400"></iframe>`),
};

let application;
let folder;
let routes;

before(async () => {
  application = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://application");
    const isWorker = pathname === "/worker.js";
    response.setHeader("content-type", isWorker ? "text/javascript" : "text/html; charset=utf-8");
    response.end(isWorker ? WORKER : (PAGES[pathname] ?? page(`At ${pathname}`)));
  });
  await new Promise((resolve) => application.listen(0, "127.0.0.1", resolve));
  folder = mkdtempSync(join(tmpdir(), "vestibule-visits-"));
  routes = join(folder, "routes.toml");
  const upstream = `upstream = "http://127.0.0.1:${application.address().port}"`;
  const open = ["/start", "/framing", "/worker.js"].map(
    (path) => `[[route]]\npath = "${path}"\nguard = "none"\n${upstream}\n`,
  );
  writeFileSync(routes, `${open.join("")}[[route]]\npath = "/app/*"\nguard = "page"\n${upstream}\n`);
});

after(() => {
  application.close();
  rmSync(folder, { recursive: true, force: true });
});

const h1 = (where, name) => where.getByRole("heading", { level: 1, name, exact: true }).waitFor();

test("a person signs in through an application whose service worker answers navigations", async () => {
  const stack = await start({ routes });
  const { context, page } = await window(stack);
  const passedOn = [];
  context.on("request", (request) => {
    if (request.serviceWorker()) passedOn.push(new URL(request.url()).pathname);
  });
  await page.goto("/start");
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.goto("/app/page?a=b");
  await signInAtProvider(page, stack);
  await h1(page, "At /app/page");
  assert.equal(page.url(), `${stack.edgeUrl}/app/page?a=b`);
  for (const path of ["/app/page", "/api/auth/login", "/api/auth/callback"])
    assert.ok(passedOn.includes(path), `the worker passed on ${path}: ${passedOn}`);
});

test("ten restored tabs end on their ten pages", async () => {
  const stack = await start({ routes });
  const { context, page } = await window(stack);
  await page.goto("/app/first");
  await signInAtProvider(page, stack);
  await h1(page, "At /app/first");
  await context.clearCookies({ name: "session" });
  const tabs = await Promise.all(Array.from({ length: 10 }, () => context.newPage()));
  const addresses = tabs.map((_, number) => `${stack.edgeUrl}/app/tab/${number}?q=${"a".repeat(400)}`);
  await Promise.all(tabs.map((tab, number) => tab.goto(addresses[number])));
  for (const [number, tab] of tabs.entries()) {
    await h1(tab, `At /app/tab/${number}`);
    assert.equal(tab.url(), addresses[number]);
  }
});

test("a guarded page in a frame leads to sign in in the whole window, and back to the page around it", async () => {
  const stack = await start({ routes });
  const { page, expects } = await window(stack);
  expects(/status of 401/);
  await page.goto("/framing");
  const frame = page.frameLocator("iframe");
  await frame.getByRole("link", { name: "Sign in" }).click();
  await signInAtProvider(page, stack);
  await h1(page, "Framing");
  await h1(frame, "At /app/part");
});
