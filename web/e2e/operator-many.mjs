// The operators' pages with 10,000 people and 100,000 sessions on the real stack: the time of every query, axe, and
// pictures in both themes. Reports without judging. Usage: npm run operator-many (--redis, --profile release,
// --pictures FOLDER)
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../../dev/stack.mjs";
import { assertAccessible, atRest, openWindow, signIn, startBrowser, startProduct } from "./support.mjs";

const { values } = parseArgs({
  options: {
    redis: { type: "boolean" },
    profile: { type: "string" },
    pictures: { type: "string" },
    people: { type: "string", default: "10000" },
    sessions: { type: "string", default: "100000" },
  },
});
const ROUNDS = 5;
const [people, sessions] = [Number(values.people), Number(values.sessions)];
const last = people - 1;
const NOTHING_FOUND = "No session matches.";
const [EVERY_MATCH, NO_MATCH] = ["at once", "after the whole provider was searched"];

// Kind of search, value, and where the answer comes from.
const QUERIES = [
  ["E-mail", `person-${last}@example.test`, "index"],
  ["User ID", `person-${last}`, "index"],
  ["Name", "Ada Lovelace 0", EVERY_MATCH],
  ["Name", "No Such Name", NO_MATCH],
  ["IP address or network", "10.0.0.0/8", EVERY_MATCH],
  ["IP address or network", "192.0.2.1", NO_MATCH],
  ["Everyone", "", EVERY_MATCH],
];

const stack = await startProduct({
  profile: values.profile,
  store: values.redis ? "redis" : "file:",
  sessionEnv: { SESSION_OPERATOR_SEARCH: "true" },
});
const browser = await startBrowser();

/** Runs a search to its first match or its end: the whole time, the number of calls, and the longest. */
async function searchOnce(page, [kind, value]) {
  await page.goto("/operator"); // a page that has the answer does not ask again
  const times = [];
  const count = (request) => {
    if (request.url().endsWith("/SearchSessions")) times.push(request.timing().responseEnd);
  };
  page.on("requestfinished", count);
  await page.getByLabel("Search by").selectOption({ label: kind });
  if (value) await page.getByLabel("Search for").fill(value);
  const begun = Date.now();
  await page.getByRole("button", { name: "Search", exact: true }).click();
  const goOn = page.getByRole("button", { name: "Continue the search" });
  const done = page.getByRole("row").nth(1).or(page.getByText(NOTHING_FOUND));
  for (;;) {
    await done.or(goOn).first().waitFor({ timeout: 60_000 });
    if ((await done.count()) > 0) break;
    await goOn.click();
    await goOn.waitFor({ state: "detached", timeout: 60_000 });
  }
  const wholeMs = Date.now() - begun;
  page.off("requestfinished", count);
  return { calls: times.length, wholeMs, longestCallMs: Math.round(Math.max(...times)) };
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

async function picture(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await atRest(page);
    await assertAccessible(page, `${name}, ${colorScheme}`);
    if (values.pictures) await page.screenshot({ path: join(values.pictures, `${name}-${colorScheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

try {
  if (values.pictures) mkdirSync(values.pictures, { recursive: true });
  const begun = Date.now();
  const python = join(ROOT, ".cache/python/bin/python");
  const seed = [
    join(ROOT, "dev/tests/python/seed_people.py"),
    new URL(stack.sessionUrls[0]).host,
    stack.issuer,
  ];
  const { status } = spawnSync(python, [...seed, String(people), String(sessions)], { stdio: "inherit" });
  if (status !== 0) throw new Error("the sessions could not be created");
  console.log(`${sessions} sessions of ${people} people in ${Math.round((Date.now() - begun) / 1000)} s`);

  const { page } = await openWindow(browser, stack, { viewport: { width: 1280, height: 900 } });
  await signIn(
    page,
    stack,
    stack.accounts.find(({ name }) => name.startsWith("Grace")),
  );
  await page.goto("/operator");
  await page.getByLabel("Purpose").fill("Ticket 4711");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Search by").waitFor();
  await picture(page, "operator-start");
  for (const query of QUERIES) {
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await searchOnce(page, query));
    const of = (key) => median(rounds.map((one) => one[key]));
    const [kind, value, found] = query;
    console.log(
      `${kind} ${value} (${found}): ${of("wholeMs")} ms in ${of("calls")} calls, the longest ${of("longestCallMs")} ms`,
    );
    if (found !== NO_MATCH) await picture(page, `operator-${kind.toLowerCase().replaceAll(" ", "-")}`);
    else await picture(page, `operator-nothing-${kind.toLowerCase().replaceAll(" ", "-")}`);
  }
  await searchOnce(page, QUERIES[1]);
  await page.getByRole("row").nth(1).getByRole("link").first().click();
  await page.getByRole("heading", { name: "Recent endings" }).waitFor();
  await picture(page, "operator-person");
  await page.getByRole("button", { name: "End all sessions of this person" }).click();
  await page.getByRole("alertdialog").waitFor();
  await picture(page, "operator-end");
  await page.keyboard.press("Escape");
  await page.goto("/operator/activity");
  await page.getByText("Connected").waitFor();
  await picture(page, "operator-activity");
} finally {
  await browser.close();
  await stack.stop();
}
