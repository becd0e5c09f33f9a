// The session library as another team gets it: packed, installed into an app that knows nothing of this one, built, and
// used in a browser behind the real edge.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
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
import { assertQuiet, openWindow, signInAtProvider, startBrowser, startProduct } from "./support.mjs";

const web = fileURLToPath(new URL("..", import.meta.url));
const work = mkdtempSync(join(tmpdir(), "vestibule-consumer-"));
const app = join(work, "app");
const TEST_MS = 60_000;

const run = (command, args, cwd) => execFileSync(command, args, { cwd, encoding: "utf8" });
const bin = (name) => join(web, "node_modules/.bin", name);
let stack;
let browser;

before(async () => {
  run("npm", ["run", "--silent", "build:session"], web);
  run("npm", ["pack", "--silent", "--pack-destination", work, "./session"], web);
  cpSync(join(web, "session/example"), app, { recursive: true });
  // What a package manager does with the file; everything else it needs is already on this machine.
  const [tarball] = readdirSync(work).filter((name) => name.endsWith(".tgz"));
  const home = join(app, "node_modules/@vestibule/session");
  mkdirSync(home, { recursive: true });
  run("tar", ["xzf", join(work, tarball), "--strip-components=1", "-C", home], work);
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
