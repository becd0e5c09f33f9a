// The pictures of the README and of docs/audit-log.md. Usage: npm run screenshots. Pictures of every page and state come from screens.spec.mjs.
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { errorPage } from "./error-page.mjs";
import { STATES } from "./states.mjs";
import { atRest, openWindow, signIn, startBrowser, startProduct } from "./support.mjs";

const picture = (name) => fileURLToPath(new URL(`../../docs/images/${name}.png`, import.meta.url));
await mkdir(fileURLToPath(new URL("../../docs/images/", import.meta.url)), { recursive: true });
const stack = await startProduct();
try {
  const browser = await startBrowser();
  const { page } = await openWindow(browser, stack, { viewport: { width: 1100, height: 760 } });
  await signIn(page, stack);
  await STATES.account.go(page);
  await atRest(page);
  await page.screenshot({ path: picture("account") });
  await errorPage(browser, stack, picture("error-page"));
  await browser.close();
} finally {
  await stack.stop();
}
console.log(`pictures in ${picture("account")} and ${picture("error-page")}`);
