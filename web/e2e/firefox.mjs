// Debian's Firefox over its Marionette protocol, which needs only a socket: the subset that a sign-in needs.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { Child } from "../../dev/lib/child.mjs";
import { until } from "./support.mjs";

const FIREFOX = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf"; // WebDriver, section "Elements"
const STEP_MS = 60_000; // it starts together with other browsers, on two cores

/** Starts it with a profile in this folder, and resolves `names` to this machine. */
export async function startFirefox(folder, names) {
  mkdirSync(folder, { recursive: true });
  const preferences = {
    "marionette.port": 0, // a free port, which it writes down
    "network.dns.localDomains": names.join(),
    "network.proxy.type": 0,
    "app.normandy.enabled": false,
    "services.settings.server": "data:,",
  };
  const lines = Object.entries(preferences).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
  );
  writeFileSync(join(folder, "user.js"), lines.join(""));
  const child = new Child(
    "firefox",
    FIREFOX,
    ["--headless", "--marionette", "--no-remote", "--profile", folder],
    {
      env: { ...process.env, HOME: folder },
    },
  );
  try {
    const port = join(folder, "MarionetteActivePort");
    await until(() => existsSync(port) && readFileSync(port, "utf8"), "Firefox listens", STEP_MS);
    const marionette = await connect(Number(readFileSync(port, "utf8")));
    await marionette.send("WebDriver:NewSession", {});
    return window(marionette, child);
  } catch (error) {
    await child.stop("SIGKILL");
    throw new Error(`Firefox did not start: ${error.message}\n${child.tail()}`);
  }
}

function window({ send, close }, child) {
  const run = async (script, ...args) => (await send("WebDriver:ExecuteScript", { script, args })).value;
  const find = async (selector) =>
    (await send("WebDriver:FindElement", { using: "css selector", value: selector })).value[ELEMENT];
  return {
    goto: (url) => send("WebDriver:Navigate", { url }),
    url: async () => (await send("WebDriver:GetCurrentURL", {})).value,
    cookies: () => send("WebDriver:GetCookies", {}),
    /** Runs a function body in the page, and waits for its result. */
    run,
    heading: () => run("return document.querySelector('h1')?.textContent"),
    fill: async (selector, text) => send("WebDriver:ElementSendKeys", { id: await find(selector), text }),
    click: async (selector) => send("WebDriver:ElementClick", { id: await find(selector) }),
    async stop() {
      await send("Marionette:Quit", { flags: ["eForceQuit"] }).catch(() => {});
      close();
      await child.stop();
    },
  };
}

/** After a greeting: `length:[0, id, command, parameters]` out, `length:[1, id, error, result]` back. */
async function connect(port) {
  const socket = net.connect(port, "127.0.0.1");
  const waiting = new Map();
  let last = 0;
  let received = Buffer.alloc(0);
  const take = ([, id, error, result]) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(`${error.error}: ${error.message}`));
    else resolve(result);
  };
  await new Promise((greeted, failed) => {
    socket.on("error", failed).on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const colon = received.indexOf(":");
        const end = colon + 1 + Number(received.subarray(0, colon).toString());
        if (colon < 0 || received.length < end) return;
        const message = JSON.parse(received.subarray(colon + 1, end).toString());
        received = received.subarray(end);
        if (Array.isArray(message)) take(message);
        else greeted();
      }
    });
  });
  socket.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("Firefox has gone"));
  });
  const send = (command, parameters) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      const text = JSON.stringify([0, last, command, parameters]);
      socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  return { send, close: () => socket.destroy() };
}
