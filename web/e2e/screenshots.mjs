// The picture in docs/web.md. Usage: npm run screenshots. screens.spec.mjs takes pictures of every page and state.
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { STATES } from "./states.mjs";
import { atRest, openWindow, signIn, startBrowser, startProduct } from "./support.mjs";

const picture = fileURLToPath(new URL("../../docs/images/account.png", import.meta.url));
await mkdir(fileURLToPath(new URL("../../docs/images/", import.meta.url)), { recursive: true });
const stack = await startProduct();
try {
  const browser = await startBrowser();
  const { page } = await openWindow(browser, stack, { viewport: { width: 1100, height: 760 } });
  await signIn(page, stack);
  await STATES.account.go(page);
  await atRest(page);
  await page.screenshot({ path: picture });
  await browser.close();
} finally {
  await stack.stop();
}
console.log(`picture in ${picture}`);
