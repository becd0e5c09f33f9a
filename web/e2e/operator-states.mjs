// Every state of the operators' pages. All responses of the service are fakes, so that each state can be reached.
import { ARABIC_NAME, answer, CHROME, field, integer, LONG_NAME, moment, SAFARI, text } from "./states.mjs";

const SERVICE = "**/session.v1.OperatorSessionService/";
const PURPOSE = "Ticket 4711: a stolen laptop";
export const ISSUER = "https://login.example.test";
const OTHER_ISSUER = "https://partners.example.test/realms/a-rather-long-name-of-a-realm";
const DAY_S = 86_400;
const HOUR_S = 3_600;

const ago = (seconds) => moment(Math.round(Date.now() / 1000) - seconds);
const device = (userAgent, address, used) => [
  ...text(1, userAgent),
  ...text(2, address),
  ...field(3, ago(used)),
];

/** A person's session; `used` and `began` in seconds ago. */
function sessionOf({ handle, subject, claims, userAgent, address, began, used, bound, state = 1 }) {
  return [
    ...text(1, handle.repeat(32)),
    ...text(2, ISSUER),
    ...text(3, subject),
    ...(claims ? text(4, JSON.stringify({ sub: subject, ...claims })) : []),
    ...field(11, ago(began)),
    ...field(14, ago(began - 7 * DAY_S)),
    ...(userAgent ? field(15, device(userAgent, "203.0.113.9", began)) : []),
    ...(userAgent ? field(16, device(userAgent, address, used)) : []),
    ...integer(17, state),
    ...(bound ? field(20, field(2, ago(began - 2))) : []),
  ];
}
const ADA = { name: "Ada Lovelace", email: "ada@example.test", department: "Engines" };
const SESSIONS = [
  {
    handle: "1",
    subject: "ada-4c1e7b",
    claims: ADA,
    userAgent: CHROME,
    address: "192.0.2.17",
    began: 3 * HOUR_S,
    used: 40,
    bound: true,
  },
  {
    handle: "2",
    subject: "ada-4c1e7b",
    claims: ADA,
    userAgent: SAFARI,
    address: "2001:db8:85a3:8d3:1319:8a2e:370:7348",
    began: 5 * DAY_S,
    used: 20 * HOUR_S,
    state: 2,
  },
  {
    handle: "3",
    subject: "3f1d5c1e-7f0e-4a53-9d8e-0a4a5f0b6c11",
    claims: { name: LONG_NAME, email: `${LONG_NAME.replaceAll(" ", ".").toLowerCase()}@example.test` },
    userAgent: CHROME,
    address: "192.0.2.18",
    began: 2 * DAY_S,
    used: 300,
  },
  {
    handle: "4",
    subject: "khwarizmi",
    claims: { name: ARABIC_NAME },
    userAgent: SAFARI,
    address: "198.51.100.4",
    began: 4 * DAY_S,
    used: 2 * HOUR_S,
  },
  {
    handle: "5",
    subject: "00u1a2b3c4d5e6f7g8h9",
    claims: {},
    userAgent: "curl/8.5.0",
    address: "192.0.2.19",
    began: DAY_S,
    used: HOUR_S,
  },
  { handle: "6", subject: "grace-9d02af", began: 6 * DAY_S, state: 3 },
];

const provider = (issuer, name) => field(1, [...text(1, issuer), ...text(2, name)]);
const found = (sessions, token = "", examined = sessions.length) =>
  answer([
    ...sessions.flatMap((session) => field(1, sessionOf(session))),
    ...(token ? text(2, token) : []),
    ...integer(3, examined),
    ...field(4, ago(0)),
  ]);

/** A failed call: a status, and the reason in google.rpc.ErrorInfo. */
function failed(code, reason) {
  const info = [...text(1, reason), ...text(2, "session.v1")];
  const any = [...text(1, "type.googleapis.com/google.rpc.ErrorInfo"), ...field(2, info)];
  const status = [...integer(1, code), ...field(3, any)];
  const trailer = Buffer.from(
    `grpc-status: ${code}\r\ngrpc-status-details-bin: ${Buffer.from(status).toString("base64")}\r\n`,
  );
  return {
    status: 200,
    contentType: "application/grpc-web+proto",
    headers: { "x-request-id": "01JD0Z5T2N3V" },
    body: Buffer.from([0x80, 0, 0, trailer.length >> 8, trailer.length & 255, ...trailer]),
  };
}

const CAUSE_LOGOUT = 1;
const CAUSE_OPERATOR = 5;
const CAUSE_THEFT = 11;
const ending = (handle, cause, seconds, by, purpose) =>
  field(1, [
    ...text(1, handle.repeat(32)),
    ...field(2, ago(seconds)),
    ...integer(3, cause),
    ...(by ? text(4, by) : []),
    ...(purpose ? text(5, purpose) : []),
    ...field(6, device(CHROME, "192.0.2.17", seconds)),
  ]);
const ENDINGS = answer([
  ...ending("7", CAUSE_OPERATOR, HOUR_S, `${ISSUER} operator-1`, "Ticket 4700: lost phone"),
  ...ending("8", CAUSE_THEFT, DAY_S),
  ...ending("9", CAUSE_LOGOUT, 2 * DAY_S),
]);

const KIND_CREATED = 1;
const KIND_ENDED = 5;
const event = (kind, subject, seconds, cause) =>
  field(1, [
    ...integer(1, kind),
    ...text(2, "0".repeat(32)),
    ...text(3, ISSUER),
    ...text(4, subject),
    ...field(5, ago(seconds)),
    ...(cause ? integer(6, cause) : []),
  ]);
const failures = field(2, [
  ...field(1, [...text(1, "code_refused"), ...integer(2, 12)]),
  ...field(1, [...text(1, "token_signature"), ...integer(2, 3)]),
  ...field(1, [...text(1, "something_new"), ...integer(2, 1)]),
  ...field(2, ago(2 * HOUR_S)),
]);

/** A stream that delivers these messages; the browser reopens it after its end. */
function stream(...messages) {
  const frames = messages.flatMap((message) => [
    0,
    0,
    0,
    message.length >> 8,
    message.length & 255,
    ...message,
  ]);
  const trailer = [...Buffer.from("grpc-status: 0\r\n")];
  const body = Buffer.from([...frames, 0x80, 0, 0, 0, trailer.length, ...trailer]);
  return { status: 200, contentType: "application/grpc-web-text", body: body.toString("base64") };
}

/** Answers the service's calls; `answers` replaces some of them, by method. */
export async function operatorService(page, answers = {}) {
  const all = {
    ListProviders: answer([...provider(ISSUER, "Example login"), ...provider(OTHER_ISSUER, "")]),
    SearchSessions: found(SESSIONS),
    ListEndings: ENDINGS,
    EndFoundSessions: answer([...integer(1, 2), ...integer(2, 1)]),
    WatchActivity: stream(
      event(KIND_CREATED, "ada-4c1e7b", 60),
      event(KIND_ENDED, "3f1d5c1e-7f0e-4a53-9d8e-0a4a5f0b6c11", 40, CAUSE_THEFT),
      event(KIND_ENDED, "khwarizmi", 20, CAUSE_LOGOUT),
      event(KIND_CREATED, "00u1a2b3c4d5e6f7g8h9", 3),
      failures,
    ),
    ...answers,
  };
  for (const [method, given] of Object.entries(all)) {
    await page.route(`${SERVICE}${method}`, (route) => {
      const reply = typeof given === "function" ? given() : given;
      return reply && route.fulfill(reply);
    });
  }
}

/** Opens an operators' page and gives the purpose. */
async function open(page, path, answers) {
  await operatorService(page, answers);
  await page.goto(path);
  await page.locator("main form input").first().fill(PURPOSE);
  await page.locator("main form button[type=submit]").first().click();
  await page.getByText(PURPOSE).waitFor();
}

const EVERYONE = `/operator?${new URLSearchParams({ provider: ISSUER, by: "everyone" })}`;
const BY_EMAIL = `/operator?${new URLSearchParams({ provider: ISSUER, by: "email", value: "ada@example.test" })}`;
const PERSON = `/operator/person?${new URLSearchParams({ provider: ISSUER, subject: "ada-4c1e7b" })}`;
const ofAda = found(SESSIONS.slice(0, 2));
const heading = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const dialog = (page) => page.getByRole("alertdialog").waitFor();

async function person(page, answers) {
  await open(page, PERSON, { SearchSessions: ofAda, ...answers });
  await page.getByText("Ticket 4700").waitFor();
}
async function refused(page, code, reason, title) {
  await operatorService(page, { ListProviders: failed(code, reason) });
  await page.goto("/operator");
  await heading(page, title);
}

/** name → how to reach it, as in states.mjs. */
const states = {
  "operator-purpose": async (page) => {
    await operatorService(page);
    await page.goto("/operator");
    await page.getByText("Why are you looking?").waitFor();
  },
  "operator-search": async (page) => {
    await open(page, "/operator");
    await page.getByText("Limit by start time").click();
  },
  "operator-results": async (page) => {
    await open(page, EVERYONE);
    await page.getByRole("row").nth(6).waitFor();
  },
  "operator-searching": (page) => open(page, BY_EMAIL, { SearchSessions: () => null }),
  "operator-empty": async (page) => {
    await open(page, BY_EMAIL, { SearchSessions: found([]) });
    await page.getByText("No session matches.").waitFor();
  },
  "operator-examined": async (page) => {
    await open(page, BY_EMAIL, { SearchSessions: found([], "next", 4_000) });
    await page.getByText(/Examined [\d,]+ sessions/).waitFor(); // it searches on for some seconds
  },
  "operator-more": async (page) => {
    await open(page, EVERYONE, { SearchSessions: found(SESSIONS.slice(0, 3), "next", 2_000) });
    await page.getByRole("button", { name: "Load more" }).waitFor();
  },
  "operator-failed": async (page) => {
    await open(page, BY_EMAIL, { SearchSessions: failed(13, "ERR_INTERNAL") });
    await page.getByText("The search did not work").waitFor();
  },
  "operator-search-off": async (page) => {
    await open(page, BY_EMAIL, { SearchSessions: failed(3, "ERR_INVALID_ARGUMENT") });
    await page.getByText("SESSION_OPERATOR_SEARCH").waitFor();
  },
  "operator-denied": (page) => refused(page, 7, "ERR_CALLER_NOT_ALLOWED", /may not use/),
  "operator-again": (page) => refused(page, 9, "ERR_FAILED_REFRESH_GRANT", /Sign in again/),
  "operator-off": (page) => refused(page, 12, "ERR_UNIMPLEMENTED", /switched off/),
  "operator-broken": (page) => refused(page, 13, "ERR_INTERNAL", /could not load/),
  "operator-loading": async (page) => {
    await operatorService(page, { ListProviders: () => null });
    await page.goto("/operator");
    await page.getByRole("main").getByRole("status").waitFor();
  },
  "operator-person": (page) => person(page),
  "operator-person-none": async (page) => {
    await open(page, PERSON, { SearchSessions: found([]), ListEndings: failed(3, "ERR_INVALID_ARGUMENT") });
    await page.getByText("not signed in").waitFor();
  },
  "operator-end-one": async (page) => {
    await person(page);
    await page.getByRole("button", { name: /^End Chrome/ }).click();
    await dialog(page);
  },
  "operator-end-person": async (page) => {
    await person(page);
    await page.getByRole("button", { name: "End all sessions of this person" }).click();
    await dialog(page);
  },
  "operator-end-everyone": async (page) => {
    await open(page, EVERYONE, { SearchSessions: found(SESSIONS, "next", 2_000) });
    await page.getByRole("button", { name: "End all these sessions" }).click();
    await dialog(page);
  },
  "operator-ending": async (page) => {
    let parts = 0;
    await open(page, EVERYONE, {
      EndFoundSessions: () => (parts++ === 0 ? answer(integer(1, 120)) : null),
    });
    await page.getByRole("button", { name: "End all these sessions" }).click();
    await page.getByLabel(/provider's name/).fill("example LOGIN");
    await page.getByRole("button", { name: "End sessions" }).click();
    await page.getByText("Ended 120 sessions so far.").waitFor();
  },
  "operator-ended": async (page) => {
    await person(page);
    await page.getByRole("button", { name: "End all sessions of this person" }).click();
    await page.getByRole("button", { name: "End sessions" }).click();
    await page.getByText("2 sessions ended.").waitFor();
  },
  "operator-end-failed": async (page) => {
    let parts = 0;
    await open(page, EVERYONE, {
      EndFoundSessions: () => (parts++ === 0 ? answer(integer(1, 120)) : failed(13, "ERR_INTERNAL")),
    });
    await page.getByRole("button", { name: "End all these sessions" }).click();
    await page.getByLabel(/provider's name/).fill(ISSUER);
    await page.getByRole("button", { name: "End sessions" }).click();
    await page.getByText("120 sessions ended before that").waitFor();
  },
  "operator-activity": async (page) => {
    await open(page, "/operator/activity");
    await page.getByText("something_new").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
  },
  "operator-activity-denied": async (page) => {
    await open(page, "/operator/activity", {
      WatchActivity: () => {
        const { body, ...rest } = failed(7, "ERR_CALLER_NOT_ALLOWED");
        return { ...rest, contentType: "application/grpc-web-text", body: body.toString("base64") };
      },
    });
    await page.getByText("You may not use the operator console.").waitFor();
  },
};
const inArabic = (path, answers) => async (page) => {
  await open(page, path, answers);
  await page.locator("main time").first().waitFor();
};
const arabic = {
  "ar-operator-results": inArabic(EVERYONE),
  "ar-operator-person": inArabic(PERSON, { SearchSessions: ofAda }),
};

export const OPERATOR_STATES = Object.fromEntries([
  ...Object.entries(states).map(([name, go]) => [name, { signedIn: true, go }]),
  ...Object.entries(arabic).map(([name, go]) => [name, { signedIn: true, options: { locale: "ar" }, go }]),
]);
