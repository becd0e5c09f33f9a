// Every page and state of the account pages, and how to reach it on the real stack. If that cannot produce a state
// on demand (a name of a hundred letters, a missing response), the test replaces only the response.
const ME = "**/api/auth/me*";
const RPC = "**/session.v1.BrowserSessionService/*";
const CURRENT = "**/session.v1.BrowserSessionService/GetCurrentSession";
const LIST = "**/session.v1.BrowserSessionService/ListMySessions";
const WATCH = "**/session.v1.BrowserSessionService/WatchMySession";

export const LONG_NAME =
  "Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh Adolph Blaine Charles David Earl Frederick Gerald";
export const ARABIC_NAME = "محمد بن موسى الخوارزمي";

/** Replaces the profile of the signed-in person. */
export const pretend = (page, claims) =>
  page.route(ME, (route) =>
    route.fulfill({
      status: 200,
      contentType: "application/json",
      body: JSON.stringify({ sub: "somebody", ...claims }),
    }),
  );

const unavailable = {
  status: 503,
  contentType: "application/json",
  headers: { "x-request-id": "01JD0Z5T2N3V" },
  body: '{"error":"ERR_SESSION_SERVICE_UNAVAILABLE"}',
};

const varint = (value) => {
  const bytes = [];
  for (let left = BigInt(value); ; left >>= 7n) {
    if (left < 128n) return [...bytes, Number(left)];
    bytes.push(Number(left & 127n) | 128);
  }
};
export const field = (number, content) => [
  ...varint((number << 3) | 2),
  ...varint(content.length),
  ...content,
];
export const integer = (number, value) => [...varint(number << 3), ...varint(value)];
export const text = (number, words) => field(number, Buffer.from(words));
export const moment = (seconds) => integer(1, seconds);
/** A message as a gRPC-Web response. */
export const answer = (message) => {
  const frame = (flag, bytes) => [flag, 0, 0, bytes.length >> 8, bytes.length & 255, ...bytes];
  return {
    status: 200,
    contentType: "application/grpc-web+proto",
    body: Buffer.from([...frame(0, message), ...frame(0x80, [...Buffer.from("grpc-status: 0\r\n")])]),
  };
};

/** A well-formed but senseless response: the session began in the year 30 million. */
const ABSURD = answer(
  field(1, [...field(11, moment(1_000_000_000_000_000n)), ...field(13, moment(1_000_000_000_000_000n))]),
);
export const absurdAnswer = (page, options) => page.route(CURRENT, (route) => route.fulfill(ABSURD), options);

// Browsers bind sessions only over TLS, which this stack does not use: the responses are fakes.
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
export const CHROME =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
const EDGE_BROWSER = `${CHROME} Edg/156.0.0.0`;
export const SAFARI =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1";

/** A session that began and was last used this many seconds ago; `bound` if it is bound to its device. */
function sessionOf({ handle, userAgent, address, began, used, bound, current, theft, notice }) {
  const ago = (seconds) => moment(Math.round(Date.now() / 1000) - seconds);
  const device = [...text(1, userAgent), ...text(2, address), ...field(3, ago(used))];
  return [
    ...text(1, handle.repeat(32)),
    ...text(6, "openid profile email"),
    ...field(11, ago(began)),
    ...field(12, ago(used)),
    ...field(13, ago(used - DAY_S)),
    ...field(14, ago(began - 7 * DAY_S)),
    ...field(16, device),
    ...integer(17, 1),
    ...(current ? integer(19, 1) : []),
    ...(bound ? field(20, field(2, ago(began - 2))) : []),
    ...(theft ? field(22, ago(theft)) : []),
    ...(notice ? field(24, [...field(1, ago(DAY_S)), ...text(2, notice)]) : []),
  ];
}
const HERE = {
  handle: "a",
  userAgent: CHROME,
  address: "192.0.2.17",
  began: 3 * HOUR_S,
  used: 5,
  bound: true,
  current: true,
};
const ELSEWHERE = [
  {
    handle: "b",
    userAgent: EDGE_BROWSER,
    address: "2001:db8::5:1",
    began: 2 * DAY_S,
    used: 4 * HOUR_S,
    bound: true,
  },
  { handle: "c", userAgent: SAFARI, address: "198.51.100.4", began: 5 * DAY_S, used: 20 * HOUR_S },
];
/** This person's sessions; this browser's comes first. */
async function sessionsAre(page, here, ...elsewhere) {
  const [current, ...others] = [here, ...elsewhere].map((one) => field(1, sessionOf(one)));
  await page.route(LIST, (route) => route.fulfill(answer([...current, ...others.flat()])));
  await page.route(CURRENT, (route) => route.fulfill(answer(current)));
}
/** This and another session are bound to their devices. */
const bound = (page) => sessionsAre(page, HERE, ...ELSEWHERE);
/** This browser's session reports that another session was ended because its cookie was copied. */
export const afterTheft = (page) => sessionsAre(page, { ...HERE, bound: false, theft: DAY_S }, ELSEWHERE[1]);
/** An operator ended this person's earlier session and wrote why. */
const afterOperator = (page) =>
  sessionsAre(page, { ...HERE, bound: false, notice: `${ARABIC_NAME}: we reset your account <b>today</b>.` });
const KIND_ENDED = 5;
const CAUSE_THEFT = 11;
/** This browser's session is ended for the same reason while its page is open. */
async function endsByTheft(page) {
  await sessionsAre(page, HERE);
  await page.route(WATCH, async (route) => {
    await page.route(ME, (me) => me.fulfill({ status: 204 }));
    const ended = [...integer(1, KIND_ENDED), ...text(2, HERE.handle.repeat(32)), ...integer(6, CAUSE_THEFT)];
    const { body, ...rest } = answer(ended);
    await route.fulfill({
      ...rest,
      contentType: "application/grpc-web-text",
      body: body.toString("base64"),
    });
  });
}

/** A person with more sessions than the window can show, all from one kind of browser at one address. */
export const manySessions = (page, count) =>
  sessionsAre(
    page,
    { ...HERE, bound: false },
    ...Array.from({ length: count }, (_, at) => ({
      ...HERE,
      handle: String.fromCharCode(98 + at),
      began: (at + 4) * HOUR_S,
      used: (at + 1) * HOUR_S,
      bound: false,
      current: false,
    })),
  );
/** The service accepts the call without a message. */
export const done = (page, method) =>
  page.route(`**/session.v1.BrowserSessionService/${method}`, (route) => route.fulfill(answer([])));

const main = (page) => page.getByRole("main");
const heading = (page) => page.getByRole("heading", { level: 1 }).waitFor();
const dialog = (page) => page.getByRole("alertdialog").waitFor();
const details = (page) => page.getByText("Signed out at the latest").first().waitFor();
async function account(page) {
  await page.goto("/account");
  await details(page);
}

/** name → how to reach it, whether it needs a sign-in, and which console messages it may cause. */
export const STATES = {
  "home-signed-out": {
    go: async (page) => {
      await page.goto("/");
      await main(page).getByRole("link", { name: "Sign in" }).waitFor();
    },
  },
  "home-unknown": {
    noise: [/status of 503/],
    go: async (page) => {
      await page.route(ME, (route) => route.fulfill(unavailable));
      await page.goto("/");
      await page.getByText("The service is not responding").waitFor();
    },
  },
  "home-checking": {
    go: async (page) => {
      await page.route(ME, () => {});
      await page.goto("/");
      await main(page).getByRole("status").waitFor();
    },
  },
  "signed-out": {
    go: async (page) => {
      await page.goto("/signed-out");
      await page.getByRole("heading", { name: "You are signed out." }).waitFor();
    },
  },
  "sign-in-error": {
    go: async (page) => {
      await page.goto("/sign-in-error?error=access_denied&request_id=01JD0Z5T2N3V");
      await heading(page);
    },
  },
  "not-found": {
    go: async (page) => {
      await page.goto("/nowhere/at/all");
      await heading(page);
    },
  },
  "came-back-without-session": {
    go: async (page) => {
      await page.goto("/signed-out");
      await heading(page);
      await page.evaluate(() => {
        sessionStorage.setItem("session.sign-in-sent-at", String(Date.now()));
        history.pushState(null, "", "/account");
      });
      await dialog(page);
    },
  },
  home: {
    signedIn: true,
    go: async (page) => {
      await page.goto("/");
      await page.getByText("You are signed in.").waitFor();
    },
  },
  "signed-out-but-not": {
    signedIn: true,
    go: async (page) => {
      await page.goto("/signed-out");
      await page.getByRole("heading", { name: "You are still signed in." }).waitFor();
    },
  },
  account: { signedIn: true, go: account },
  "account-claims": {
    signedIn: true,
    go: async (page) => {
      await account(page);
      await page.getByRole("button", { name: "Show claims" }).click();
      await page.getByText('"sub"').waitFor();
    },
  },
  "account-refreshed": {
    signedIn: true,
    go: async (page) => {
      await account(page);
      await page.getByRole("button", { name: "Refresh from provider" }).click();
      await page.getByText("Your profile is up to date.").waitFor();
    },
  },
  "account-checking": {
    signedIn: true,
    go: async (page) => {
      await page.route(ME, () => {});
      await page.goto("/account");
      await main(page).getByRole("status").waitFor();
    },
  },
  "account-loading": {
    signedIn: true,
    go: async (page) => {
      await page.route(RPC, () => {});
      await page.goto("/account");
      await main(page).getByRole("status").waitFor();
    },
  },
  "account-failed": {
    signedIn: true,
    noise: [/status of 500/],
    go: async (page) => {
      await page.route(RPC, (route) => route.fulfill({ status: 500, body: "" }));
      await page.goto("/account");
      await page.getByText("We could not load").waitFor();
    },
  },
  "account-down": {
    signedIn: true,
    noise: [/status of 503/],
    go: async (page) => {
      await account(page);
      await page.route(ME, (route) => route.fulfill(unavailable));
      await page.getByRole("button", { name: "Refresh from provider" }).click();
      await page.getByText("The service is not responding").waitFor();
      await page.getByText("We could not refresh your profile").waitFor();
    },
  },
  "account-down-at-start": {
    signedIn: true,
    noise: [/status of 503/],
    go: async (page) => {
      await page.route(ME, (route) => route.fulfill(unavailable));
      await page.goto("/account");
      await page.getByRole("heading", { name: "We cannot reach your account" }).waitFor();
    },
  },
  "account-offline": {
    signedIn: true,
    noise: [/ERR_INTERNET_DISCONNECTED/],
    go: async (page) => {
      await account(page);
      await page.context().setOffline(true);
      await page.getByText("You are offline").waitFor();
    },
  },
  "account-long-name": {
    signedIn: true,
    go: async (page) => {
      await pretend(page, {
        name: LONG_NAME,
        email: `${LONG_NAME.replaceAll(" ", ".").toLowerCase()}@a-rather-long-domain-name.example.test`,
        org_name: LONG_NAME,
      });
      await account(page);
    },
  },
  "account-rtl-name": {
    signedIn: true,
    go: async (page) => {
      await pretend(page, { name: ARABIC_NAME, email: "khwarizmi@example.test", email_verified: true });
      await account(page);
    },
  },
  "account-missing-picture": {
    signedIn: true,
    noise: [/status of 404/],
    go: async (page) => {
      await pretend(page, { name: "Ada Lovelace", email: "ada@example.test", picture: "/assets/nobody.png" });
      await account(page);
      await page.getByText("AL").first().waitFor();
    },
  },
  "account-bare": {
    signedIn: true,
    go: async (page) => {
      await pretend(page, {});
      await account(page);
    },
  },
  crash: {
    signedIn: true,
    noise: [/RangeError|Invalid time value/],
    go: async (page) => {
      await absurdAnswer(page);
      await page.goto("/account");
      await page.getByRole("heading", { name: "Something went wrong on this page." }).waitFor();
    },
  },
  sessions: {
    signedIn: true,
    go: async (page) => {
      await page.goto("/account/sessions");
      await page.getByText("This browser").waitFor();
    },
  },
  "sessions-bound": {
    signedIn: true,
    go: async (page) => {
      await bound(page);
      await page.goto("/account/sessions");
      await page.getByText("Bound to this device").waitFor();
      await page.getByText("Bound to its device").waitFor();
    },
  },
  "sessions-alike": {
    signedIn: true,
    go: async (page) => {
      await manySessions(page, 3);
      await done(page, "EndMySession");
      await page.goto("/account/sessions");
      await page.getByText("In every session").waitFor();
      await main(page).getByRole("listitem").nth(2).getByRole("button").click();
      await page.getByText("is signed out.").waitFor();
    },
  },
  "sessions-theft": {
    signedIn: true,
    go: async (page) => {
      await afterTheft(page);
      await page.goto("/account/sessions");
      await page.getByText("This browser").waitFor();
      await page.getByText("sessions to protect you").waitFor();
    },
  },
  "account-theft": {
    signedIn: true,
    go: async (page) => {
      await afterTheft(page);
      await account(page);
      await page.getByText("sessions to protect you").waitFor();
    },
  },
  "account-operator-notice": {
    signedIn: true,
    go: async (page) => {
      await afterOperator(page);
      await account(page);
      await page.getByText("An administrator signed you out").waitFor();
    },
  },
  "sessions-loading": {
    signedIn: true,
    go: async (page) => {
      await page.route(RPC, () => {});
      await page.goto("/account/sessions");
      await main(page).getByRole("status").waitFor();
    },
  },
  "sessions-failed": {
    signedIn: true,
    noise: [/status of 500/],
    go: async (page) => {
      await page.route(RPC, (route) => route.fulfill({ status: 500, body: "" }));
      await page.goto("/account/sessions");
      await page.getByText("We could not load your sessions").waitFor();
    },
  },
  "sessions-ask": {
    signedIn: true,
    others: 2,
    go: async (page) => {
      await page.goto("/account/sessions");
      await page.getByRole("button", { name: "Sign out everywhere else" }).click();
      await dialog(page);
    },
  },
  session: {
    signedIn: true,
    go: async (page) => {
      await page.goto("/account/session");
      await page.getByText("What you have allowed").waitFor();
    },
  },
  "session-bound": {
    signedIn: true,
    go: async (page) => {
      await bound(page);
      await page.goto("/account/session");
      await page.getByText("Bound to this device").waitFor();
    },
  },
  "session-stayed": {
    signedIn: true,
    go: async (page) => {
      await page.goto("/account/session");
      await page.getByRole("button", { name: "Stay signed in" }).click();
      await page.getByText(/You stay signed in until/).waitFor();
    },
  },
  ended: {
    signedIn: true,
    go: async (page) => {
      await account(page);
      await page.route(ME, (route) => route.fulfill({ status: 204 }));
      await page.getByRole("button", { name: "Refresh from provider" }).click();
      await dialog(page);
    },
  },
  "ended-theft": {
    signedIn: true,
    go: async (page) => {
      await endsByTheft(page);
      await page.goto("/account");
      await dialog(page);
      await page.getByText("used in two places").waitFor();
    },
  },
};

/** The same pages in the right-to-left language; elements are found by position, not by text. */
const ARABIC = { options: { locale: "ar" } };
async function theftTold(page) {
  await main(page).getByRole("status").getByRole("heading").waitFor();
  await main(page).locator("time").first().waitFor();
}
const inArabic = (path, ready) => async (page) => {
  await page.goto(path);
  await page.locator("html[dir=rtl][lang=ar]").waitFor();
  await ready(page);
};
Object.assign(STATES, {
  "ar-home": { ...ARABIC, go: inArabic("/", (page) => main(page).getByRole("link").first().waitFor()) },
  "ar-sign-in-error": {
    ...ARABIC,
    go: inArabic("/sign-in-error?error=login_required&request_id=01JD0Z5T2N3V", heading),
  },
  "ar-account": {
    ...ARABIC,
    signedIn: true,
    go: inArabic("/account", (page) => main(page).locator("time").first().waitFor()),
  },
  "ar-sessions": {
    ...ARABIC,
    signedIn: true,
    others: 2,
    go: inArabic("/account/sessions", (page) => main(page).locator("time").first().waitFor()),
  },
  "ar-sessions-bound": {
    ...ARABIC,
    signedIn: true,
    go: async (page) => {
      await bound(page);
      await inArabic("/account/sessions", (ready) => main(ready).locator("time").first().waitFor())(page);
    },
  },
  "ar-sessions-theft": {
    ...ARABIC,
    signedIn: true,
    go: async (page) => {
      await afterTheft(page);
      await inArabic("/account/sessions", theftTold)(page);
    },
  },
  "ar-account-theft": {
    ...ARABIC,
    signedIn: true,
    go: async (page) => {
      await afterTheft(page);
      await inArabic("/account", theftTold)(page);
    },
  },
  "ar-session": {
    ...ARABIC,
    signedIn: true,
    go: inArabic("/account/session", (page) => main(page).locator("code").first().waitFor()),
  },
  "ar-session-bound": {
    ...ARABIC,
    signedIn: true,
    go: async (page) => {
      await bound(page);
      await inArabic("/account/session", (ready) => main(ready).locator("code").first().waitFor())(page);
    },
  },
  "ar-ended": {
    ...ARABIC,
    signedIn: true,
    go: async (page) => {
      await inArabic("/account", (ready) => main(ready).locator("time").first().waitFor())(page);
      await page.route(ME, (route) => route.fulfill({ status: 204 }));
      await main(page).getByRole("button").first().click();
      await dialog(page);
    },
  },
  "ar-ended-theft": {
    ...ARABIC,
    signedIn: true,
    go: async (page) => {
      await endsByTheft(page);
      await inArabic("/account", dialog)(page);
    },
  },
});
