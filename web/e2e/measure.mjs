// Measures the app on the real stack: size and time of a first load, and the time from a click to the next picture.
// Reports without judging, because the figures depend on the machine. Usage: npm run measure (add --json for a
// program, --profile for other builds of the services than debug)
import { parseArgs } from "node:util";

import { STATES } from "./states.mjs";
import { openWindow, signIn, startBrowser, startProduct } from "./support.mjs";

const ROUNDS = 9;
const { values } = parseArgs({ options: { json: { type: "boolean" }, profile: { type: "string" } } });
const stack = await startProduct({ profile: values.profile });
const browser = await startBrowser();
const report = { firstLoad: {}, interactions: {} };

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const spread = (values) => ({
  median: Math.round(median(values)),
  min: Math.round(Math.min(...values)),
  max: Math.round(Math.max(...values)),
});

/** Milliseconds from the click to the second frame after it, which is the first that surely shows the effect. */
const click = (locator) =>
  locator.evaluate(
    (element) =>
      new Promise((resolve) => {
        const begun = performance.now();
        element.click();
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - begun)));
      }),
  );

async function firstLoad(name, path, storageState) {
  const paints = [];
  let script = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { page, context } = await openWindow(browser, stack, storageState ? { storageState } : {});
    await page.goto(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("load");
    const seen = await page.evaluate(() => ({
      paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
      script: performance
        .getEntriesByType("resource")
        .filter(({ name }) => name.endsWith(".js"))
        .reduce((bytes, { encodedBodySize }) => bytes + encodedBodySize, 0),
    }));
    paints.push(seen.paint);
    script = Math.max(script, seen.script);
    await context.close();
  }
  report.firstLoad[name] = { firstContentfulPaintMs: spread(paints), scriptBytes: script };
}

try {
  const { page, context } = await openWindow(browser, stack);
  await signIn(page, stack);
  const cookies = await context.storageState();
  await firstLoad("home", "/");
  await firstLoad("account", "/account", cookies);

  await STATES.account.go(page);
  const interactions = {
    "to Your sessions": () => page.getByRole("link", { name: "Your sessions", exact: true }),
    "to This session": () => page.getByRole("link", { name: "This session", exact: true }),
    "to Profile": () => page.getByRole("link", { name: "Profile", exact: true }),
    "show claims": () => page.getByRole("button", { name: "Show claims" }),
    "hide claims": () => page.getByRole("button", { name: "Hide claims" }),
    "dark theme": () => page.getByRole("radio", { name: "Dark" }),
    "system theme": () => page.getByRole("radio", { name: "System" }),
  };
  const took = Object.fromEntries(Object.keys(interactions).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [name, target] of Object.entries(interactions)) took[name].push(await click(target()));
  for (const [name, values] of Object.entries(took)) report.interactions[name] = spread(values);
} finally {
  await browser.close();
  await stack.stop();
}

if (values.json) console.log(JSON.stringify(report, null, 2));
else {
  for (const [name, { firstContentfulPaintMs, scriptBytes }] of Object.entries(report.firstLoad)) {
    const { median, min, max } = firstContentfulPaintMs;
    console.log(
      `first load, ${name}: painted after ${median} ms (${min} to ${max}), ${(scriptBytes / 1000).toFixed(1)} kB of script`,
    );
  }
  for (const [name, { median, min, max }] of Object.entries(report.interactions))
    console.log(`${name}: ${median} ms (${min} to ${max})`);
}
