// Forced colours (Windows' high contrast): with system colours only, all information stays visible.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test as runTest } from "node:test";
import { fileURLToPath } from "node:url";
import { STATES } from "./states.mjs";
import { assertAccessible, atRest, browserTests, signIn } from "./support.mjs";

const test = (name, body) => runTest(name, { timeout: 240_000 }, body);
const { stack: start, window } = browserTests();
const folder = fileURLToPath(new URL("../test-results/screens/", import.meta.url));
mkdirSync(folder, { recursive: true });

async function forced(options) {
  const stack = await start();
  const opened = await window(stack, { forcedColors: "active", reducedMotion: "reduce", ...options });
  await signIn(opened.page, stack);
  return { ...opened, stack };
}
const styleOf = (locator, ...names) =>
  locator.evaluate((node, wanted) => wanted.map((name) => getComputedStyle(node)[name]), names);
/** The background colour of the page: elements in this colour are invisible. */
const canvasOf = async (page) => (await styleOf(page.locator("body"), "backgroundColor"))[0];

for (const colorScheme of ["light", "dark"]) {
  test(`the current page, the chosen theme and the focus stand out: ${colorScheme}`, async () => {
    const { page } = await forced({ colorScheme });
    const canvas = await canvasOf(page);
    const lineOf = async (name) =>
      (await styleOf(page.getByRole("link", { name, exact: true }), "borderBottomColor"))[0];
    assert.notEqual(await lineOf("Profile"), canvas, "the current tab is underlined");
    assert.equal(await lineOf("Your sessions"), canvas, "another tab is not");

    const choice = (name) => page.locator("label", { has: page.getByRole("radio", { name }) });
    const backgroundOf = async (name) => (await styleOf(choice(name), "backgroundColor"))[0];
    assert.notEqual(await backgroundOf("System"), await backgroundOf("Dark"), "the chosen theme stands out");
    await page.getByRole("radio", { name: "System" }).focus();
    await page.keyboard.press("ArrowRight");
    const [style, width, color] = await styleOf(
      choice("Light"),
      "outlineStyle",
      "outlineWidth",
      "outlineColor",
    );
    assert.deepEqual([style, width], ["solid", "3px"]);
    assert.notEqual(color, canvas, "the focus is to be seen");
  });

  test(`the chart, its legend and badges are there: ${colorScheme}`, async () => {
    const { page } = await forced({ colorScheme });
    await STATES["session-bound"].go(page);
    const canvas = await canvasOf(page);
    const swatches = page.locator("ol li > span:first-child");
    const colours = await swatches.evaluateAll((all) =>
      all.map((one) => getComputedStyle(one).backgroundColor),
    );
    assert.ok(colours.length >= 4 && !colours.includes(canvas), `the legend has colours: ${colours}`);
    const strokes = await page
      .locator("main svg path")
      .evaluateAll((all) => all.map((one) => getComputedStyle(one).stroke));
    assert.ok(strokes.length >= 4 && !strokes.includes(canvas), `the chart has lines: ${strokes}`);
    await STATES["sessions-bound"].go(page);
    for (const name of ["This browser", "Bound to this device"]) {
      const [style, color] = await styleOf(
        page.getByText(name, { exact: true }),
        "outlineStyle",
        "outlineColor",
      );
      assert.notEqual(style, "none", name);
      assert.notEqual(color, canvas, name);
    }
  });
}

test("the buttons of the edge's own pages keep an outline", async () => {
  const { page, expects } = await forced();
  expects(/status of 4\d\d/);
  // A signed-in browser is redirected from there.
  await page.context().clearCookies();
  await page.goto("/api/auth/callback?error=access_denied&state=unknown");
  const [style, color] = await styleOf(
    page.locator("main .button").first(),
    "borderTopStyle",
    "borderTopColor",
  );
  assert.equal(style, "solid");
  assert.notEqual(color, await canvasOf(page));
});

const PAGES = [
  "account",
  "sessions-alike",
  "sessions-bound",
  "sessions-ask",
  "session-bound",
  "account-theft",
  "sessions-loading",
];
for (const name of PAGES) {
  test(`${name}: accessible in forced colours`, async () => {
    const { page, stack } = await forced();
    for (let others = 0; others < (STATES[name].others ?? 0); others += 1)
      await signIn((await window(stack)).page, stack);
    await STATES[name].go(page, stack);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, forcedColors: "active" });
      for (const width of [390, 1280]) {
        await page.setViewportSize({ width, height: 844 });
        await atRest(page);
        await page.screenshot({
          path: `${folder}${name}-forced-${colorScheme}-${width}.png`,
          fullPage: true,
        });
      }
      await assertAccessible(page, `${name}, forced ${colorScheme}`);
    }
  });
}
