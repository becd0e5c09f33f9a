// The session library as another team gets it: packed, installed into a separate app, built, and used in a browser
// behind the real edge. One app renders in the browser, one with Next.js on a server.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort, until } from "../../dev/lib/net.mjs";
import { session as packSession } from "../../dev/packages.mjs";
import { assertQuiet, openWindow, signInAtProvider, startBrowser, startProduct } from "./support.mjs";

const web = fileURLToPath(new URL("..", import.meta.url));
const work = mkdtempSync(join(tmpdir(), "vestibule-consumer-"));
const app = join(work, "app");
const TEST_MS = 240_000;
// Installing and building Next.js takes half a minute each on an idle machine.
const NEXT_MS = 300_000;

const run = (command, args, cwd) => execFileSync(command, args, { cwd, encoding: "utf8" });
const bin = (name) => join(web, "node_modules/.bin", name);
let stack;
let browser;

/** Installs the packed file as a package manager does. */
function installSession(folder) {
  const [tarball] = readdirSync(work).filter((name) => name.endsWith(".tgz"));
  const home = join(folder, "node_modules/@vestibule/session");
  mkdirSync(home, { recursive: true });
  run("tar", ["xzf", join(work, tarball), "--strip-components=1", "-C", home], work);
}

before(async () => {
  await packSession(join(work, "package"), work);
  cpSync(join(web, "session/example"), app, { recursive: true });
  installSession(app);
  // All other dependencies are already on this machine.
  mkdirSync(join(app, "node_modules/@types"), { recursive: true });
  for (const name of [
    "react",
    "react-dom",
    "scheduler",
    "vite",
    "@types/react",
    "@types/react-dom",
    "csstype",
  ])
    symlinkSync(join(web, "node_modules", name), join(app, "node_modules", name));
  run(bin("tsc"), ["-p", "."], app);
  run(bin("vite"), ["build", "--logLevel", "error"], app);
  const routes = join(work, "routes.toml");
  writeFileSync(routes, `[[route]]\npath = "/*"\nguard = "none"\nupstream = "dir:${app}/dist"\n`);
  stack = await startProduct({
    routes,
    sessionEnv: { SESSION_ROLLING_DURATION: "20", SESSION_ABSOLUTE_DURATION: "600" },
  });
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await stack?.stop();
  rmSync(work, { recursive: true, force: true });
});

test("the package holds its modules, their types, its manual and nothing else", () => {
  const files = readdirSync(join(app, "node_modules/@vestibule/session"), { recursive: true }).map(String);
  assert.ok(
    files.includes("README.md") && files.includes("dist/index.js") && files.includes("dist/index.d.ts"),
  );
  assert.deepEqual(
    files.filter((name) => /test|testing|example/.test(name)),
    [],
  );
  for (const name of files.filter((name) => name.endsWith(".js"))) {
    const imports = [
      ...readFileSync(join(app, "node_modules/@vestibule/session", name), "utf8").matchAll(/from "([^"]+)"/g),
    ];
    for (const [, from] of imports)
      assert.match(from, /^(\.\/|react$|react\/jsx-runtime$)/, `${name} imports ${from}`);
  }
});

test("an app that uses one function of it carries only that", () => {
  const folder = join(app, "little");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "index.js"),
    'import { loginUrl } from "@vestibule/session"; globalThis.url = loginUrl("/x");\n',
  );
  writeFileSync(join(folder, "index.html"), '<script type="module" src="./index.js"></script>');
  run(bin("vite"), ["build", folder, "--outDir", join(work, "little"), "--logLevel", "error"], app);
  const [script] = readdirSync(join(work, "little/assets")).filter((name) => name.endsWith(".js"));
  const text = readFileSync(join(work, "little/assets", script), "utf8");
  assert.match(text, /api\/auth\/login/);
  assert.doesNotMatch(text, /BroadcastChannel|createContext|api\/auth\/me/);
});

test("the other app signs people in, warns them, follows the other tab", { timeout: TEST_MS }, async () => {
  const { page, context, seen } = await openWindow(browser, stack);
  await page.goto("/orders?state=open#latest");
  await signInAtProvider(page, stack);
  await page.getByRole("heading", { name: "Orders of Ada Lovelace" }).waitFor();
  assert.equal(page.url(), `${stack.edgeUrl}/orders?state=open#latest`);
  const alert = page.getByRole("alert");
  await alert.waitFor();
  const secondsLeft = async () => Number(/in (\d+) seconds/.exec((await alert.textContent()) ?? "")?.[1]);
  assert.ok((await secondsLeft()) <= 20);
  await page.waitForFunction(
    () => Number(/in (\d+) seconds/.exec(document.body.textContent ?? "")?.[1]) < 16,
  );
  await alert.getByRole("button", { name: "Stay" }).click();
  await page.waitForFunction(
    () => Number(/in (\d+) seconds/.exec(document.body.textContent ?? "")?.[1]) > 17,
  );
  const second = await context.newPage();
  await second.goto("/orders");
  await second.getByRole("heading", { name: "Orders of Ada Lovelace" }).waitFor();
  await second.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Signed out: signed-out.").waitFor();
  assertQuiet(seen);
  await context.close();
});

test("modules with hooks keep the directive by which a server leaves them to the browser", () => {
  const home = join(app, "node_modules/@vestibule/session/dist");
  const isForClients = (name) => /^["']use client["'];/.test(readFileSync(join(home, name), "utf8"));
  for (const name of readdirSync(home).filter((name) => name.endsWith(".js"))) {
    const usesReact = /from "react"/.test(readFileSync(join(home, name), "utf8"));
    assert.equal(isForClients(name), usesReact || name === "useSignOut.js", name);
  }
});

test("a Next.js app renders on the server and signs people in", { timeout: NEXT_MS }, async (t) => {
  const next = join(work, "next");
  cpSync(join(web, "session/example-next"), next, { recursive: true });
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], next);
  installSession(next);
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" };
  const command = join(next, "node_modules/.bin/next");
  execFileSync(command, ["build"], { cwd: next, env, encoding: "utf8" });
  const port = await freePort();
  const server = spawn(command, ["start", "-H", "127.0.0.1", "-p", String(port)], {
    cwd: next,
    env,
    stdio: "ignore",
  });
  t.after(() => server.kill());
  const upstream = `http://127.0.0.1:${port}`;
  const page = await until(
    TEST_MS,
    async () => {
      const answer = await fetch(upstream).catch(() => null);
      return answer?.ok ? answer.text() : null;
    },
    () => "Next.js does not answer",
  );
  assert.match(page, /<h1>Orders<\/h1><p>One moment…<\/p>/, "the server knows no user");
  const routes = join(work, "next.toml");
  writeFileSync(routes, `[[route]]\npath = "/*"\nguard = "none"\nupstream = "${upstream}"\n`);
  const behind = await startProduct({ routes });
  t.after(() => behind.stop());
  const { page: tab, context, seen } = await openWindow(browser, behind);
  await tab.goto("/");
  await tab.getByRole("link", { name: "Sign in" }).click();
  await signInAtProvider(tab, behind);
  await tab.getByText("Orders of Ada Lovelace").waitFor();
  await tab.reload();
  await tab.getByText("Orders of Ada Lovelace").waitFor();
  assertQuiet(seen);
  await tab.getByRole("button", { name: "Sign out" }).click();
  await tab.getByRole("link", { name: "Sign in" }).waitFor();
  await context.close();
});
