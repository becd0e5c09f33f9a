// Every page and state in both themes and at two widths: no axe findings, no horizontal overflow, no console output.
// PICTURES=1 saves a picture of each in test-results/screens (not committed) for review.
// ONLY=account,sessions selects some of them.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { OPERATOR_STATES } from "./operator-states.mjs";
import { STATES } from "./states.mjs";
import { assertAccessible, atRest, browserTests, COLOUR_RULES, signIn } from "./support.mjs";

const WIDTHS = [390, 1280];
const HEIGHT = 844;
const TEST_MS = 240_000;
const folder = fileURLToPath(new URL("../test-results/screens/", import.meta.url));
const wanted = process.env.ONLY?.split(",");
mkdirSync(folder, { recursive: true });

const { stack: start, window } = browserTests();

/** The cookies of a signed-in person, obtained once for all states. */
let cookies;
async function signedIn(stack) {
  if (!cookies) {
    const { page, context } = await window(stack);
    await signIn(page, stack);
    cookies = await context.storageState();
  }
  return cookies;
}

for (const [name, state] of Object.entries({ ...STATES, ...OPERATOR_STATES })) {
  if (wanted && !wanted.includes(name)) continue;
  test(`${name}: accessible, in its place and quiet, in both themes and widths`, {
    timeout: TEST_MS,
  }, async () => {
    const stack = await start();
    for (let others = 0; others < (state.others ?? 0); others += 1)
      await signIn((await window(stack)).page, stack);
    const { page, expects } = await window(stack, {
      viewport: { width: WIDTHS[0], height: HEIGHT },
      reducedMotion: "reduce",
      ...(state.signedIn && { storageState: await signedIn(stack) }),
      ...state.options,
    });
    expects(...(state.noise ?? []));
    await state.go(page, stack);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: HEIGHT });
        await atRest(page);
        if (process.env.PICTURES)
          await page.screenshot({ path: `${folder}${name}-${colorScheme}-${width}.png`, fullPage: true });
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.equal(wider, 0, `scrolls sideways at ${width}`);
      }
      await assertAccessible(
        page,
        `${name}, ${colorScheme}`,
        colorScheme === "dark" ? COLOUR_RULES : undefined,
      );
    }
  });
}
