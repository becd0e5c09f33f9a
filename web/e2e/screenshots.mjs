// Pictures of every page and state, in both themes and at both ends of the widths, for looking at. Not committed, except
// the one the README shows. Usage: npm run screenshots
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { openWindow, signIn, startBrowser, startProduct } from "./support.mjs";

const folder = fileURLToPath(new URL("../test-results/screenshots/", import.meta.url));
const readme = fileURLToPath(new URL("../../docs/images/account.png", import.meta.url));
await mkdir(folder, { recursive: true });
await mkdir(fileURLToPath(new URL("../../docs/images/", import.meta.url)), { recursive: true });

const LONG =
  "Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh Adolph Blaine Charles David Earl Frederick Gerald";
const profile = (claims) => ({
  status: 200,
  contentType: "application/json",
  body: JSON.stringify({ sub: "somebody", ...claims }),
});
const unavailable = {
  status: 503,
  contentType: "application/json",
  headers: { "x-request-id": "01JD0Z5T2N3V" },
  body: '{"error":"ERR_SESSION_SERVICE_UNAVAILABLE"}',
};
const ME = "**/api/auth/me*";
const RPC = "**/session.v1.BrowserSessionService/*";

const heading = (page) => page.getByRole("heading", { level: 1 }).waitFor();
// name → how to get there; each starts signed in
const SIGNED_IN = {
  home: (page) => page.goto("/").then(() => heading(page)),
  account: async (page) => {
    await page.goto("/account");
    await page.getByText("This device").waitFor();
    await page.getByText("Signed out at the latest").waitFor();
  },
  "account-claims": async (page) => {
    await page.goto("/account");
    await page.getByRole("button", { name: "Show claims" }).click();
  },
  "account-loading": async (page) => {
    await page.route(RPC, () => {});
    await page.goto("/account");
    await heading(page);
  },
  "account-unknown": async (page) => {
    await page.route(ME, () => {});
    await page.goto("/account");
    await page.locator("main [role=status]").waitFor();
  },
  "account-failed": async (page) => {
    await page.route(RPC, (route) => route.fulfill({ status: 500, body: "" }));
    await page.goto("/account");
    await page.getByText("could not be loaded").waitFor();
  },
  "account-down": async (page) => {
    await page.goto("/account");
    await heading(page);
    await page.route(ME, (route) => route.fulfill(unavailable));
    await page.getByRole("button", { name: "Refresh from provider" }).click();
    await page.getByText("The service is not answering").waitFor();
  },
  "account-down-at-start": async (page) => {
    await page.route(ME, (route) => route.fulfill(unavailable));
    await page.goto("/account");
    await page.getByRole("heading", { name: "We cannot reach your account" }).waitFor();
  },
  "account-long-name": async (page) => {
    await page.route(ME, (route) =>
      route.fulfill(
        profile({
          name: LONG,
          email: `${LONG.replaceAll(" ", ".").toLowerCase()}@a-rather-long-domain-name.example.test`,
          org_name: LONG,
        }),
      ),
    );
    await page.goto("/account");
    await heading(page);
  },
  "account-rtl-name": async (page) => {
    await page.route(ME, (route) =>
      route.fulfill(
        profile({ name: "محمد بن موسى الخوارزمي", email: "khwarizmi@example.test", email_verified: true }),
      ),
    );
    await page.goto("/account");
    await heading(page);
  },
  "account-bare": async (page) => {
    await page.route(ME, (route) => route.fulfill(profile({})));
    await page.goto("/account");
    await heading(page);
  },
  sessions: async (page) => {
    await page.goto("/account/sessions");
    await page.getByText("This browser").waitFor();
  },
  session: async (page) => {
    await page.goto("/account/session");
    await page.getByText("What you have allowed").waitFor();
  },
  ended: async (page) => {
    await page.goto("/account");
    await heading(page);
    await page.route(ME, (route) => route.fulfill({ status: 204 }));
    await page.getByRole("button", { name: "Refresh from provider" }).click();
    await page.getByRole("alertdialog").waitFor();
  },
};
const SIGNED_OUT = {
  "home-signed-out": (page) =>
    page.goto("/").then(() => page.locator("main").getByRole("link", { name: "Sign in" }).waitFor()),
  "signed-out": (page) => page.goto("/signed-out").then(() => heading(page)),
  "sign-in-error": (page) =>
    page.goto("/sign-in-error?error=access_denied&request_id=01JD0Z5T2N3V").then(() => heading(page)),
  "not-found": (page) => page.goto("/nowhere/at/all").then(() => heading(page)),
};

const wanted = process.argv.slice(2);
const stack = await startProduct();
const browser = await startBrowser();
try {
  for (const [group, pages] of [
    ["in", SIGNED_IN],
    ["out", SIGNED_OUT],
  ]) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [320, 1440]) {
        const { context, page, seen } = await openWindow(browser, stack, {
          colorScheme,
          viewport: { width, height: 900 },
        });
        if (group === "in") await signIn(page, stack);
        for (const [name, go] of Object.entries(pages)) {
          if (wanted.length > 0 && !wanted.includes(name)) continue;
          await page.unrouteAll({ behavior: "ignoreErrors" });
          try {
            await go(page);
            await page.evaluate(() => document.fonts.ready);
            await page.waitForTimeout(900); // the door swings open
            await page.screenshot({ path: `${folder}${name}-${colorScheme}-${width}.png`, fullPage: true });
            const overflow = await page.evaluate(
              () => document.documentElement.scrollWidth - window.innerWidth,
            );
            if (overflow > 0) console.log(`${name} at ${width}: ${overflow} px wider than the window`);
            if (name === "account" && width === 1440 && colorScheme === "light") {
              await page.setViewportSize({ width: 1100, height: 760 });
              await page.screenshot({ path: readme });
              await page.setViewportSize({ width, height: 900 });
            }
          } catch (error) {
            console.log(`${name} ${colorScheme} ${width}: ${error.message.split("\n")[0]}`);
          }
        }
        for (const problem of new Set(seen.problems))
          console.log(`${group} ${colorScheme} ${width}: ${problem}`);
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
  await stack.stop();
}
console.log(`pictures in ${folder}`);
