// Browsers that bind sessions to a device. Chromium needs a trusted certificate; without a key store it uses software
// keys. Pages cannot see the binding, so its DevTools protocol and the edge's records show it.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { makeAuthority } from "../../dev/lib/authority.mjs";
import { CHROMIUM, startProduct } from "./support.mjs";

/** The edge's host name: bindings belong to a registrable domain, and `localhost` has none. */
export const HOST = "app.vestibule.test";
/** Another host of the same site. */
export const SIBLING = "other.vestibule.test";
/** A host of another site. */
export const ELSEWHERE = "elsewhere.test";

/** The shortest allowed lifetime of a proof at the edge and in the browser, in seconds. */
export const DURATION_SECS = 10;
export const BROWSER_SECS = 9;
/** How long the edge serves a session without proof after it has offered registration. */
export const GRACE_SECS = 30;

const STEP_MS = 60_000; // several browsers at once, on two cores
const CERTIFICATE_DAYS = 2;
const KEYS_IN_SOFTWARE = [
  "DeviceBoundSessions",
  "EnableBoundSessionCredentialsSoftwareKeysForManualTesting",
  "kEnableBoundSessionCredentialsSoftwareKeysForManualTesting",
];
const SESSION = "__Host-session";
const PROOF = "__Host-session_bound";

export const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/**
 * A certificate for the edge, and an authority that this folder's browsers trust. Needs openssl and certutil.
 */
export function makeTrust() {
  const folder = mkdtempSync(join(tmpdir(), "vestibule-devices-"));
  const authority = makeAuthority(join(folder, "authority"));
  const [certificate, key, request, extensions] = ["tls.crt", "tls.key", "request", "extensions"].map(
    (name) => join(folder, name),
  );
  const openssl = (...args) => execFileSync("openssl", args, { stdio: "pipe" });
  writeFileSync(
    extensions,
    `basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\nsubjectAltName=DNS:${HOST}\n`,
  );
  openssl(
    ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", `/CN=${HOST}`],
    ...["-keyout", key, "-out", request],
  );
  openssl(
    ...["x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority.key],
    ...["-days", String(CERTIFICATE_DAYS), "-extfile", extensions, "-out", certificate],
  );
  trustIn(join(folder, "home/.pki/nssdb"), authority.certificate);
  return {
    folder,
    home: join(folder, "home"),
    authority: authority.certificate,
    ca: readFileSync(authority.certificate),
    settings: { EDGE_TLS_CERT_FILE: certificate, EDGE_TLS_KEY_FILE: key },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Adds an authority to the certificate database of a browser in this folder. */
export function trustIn(database, authority) {
  const certutil = (...args) =>
    execFileSync("certutil", ["-d", `sql:${database}`, ...args], { stdio: "pipe" });
  mkdirSync(database, { recursive: true });
  certutil("-N", "--empty-password");
  certutil("-A", "-t", "C,,", "-n", "tests", "-i", authority);
}

/**
 * A TLS stack at the name above, with proofs valid for ten seconds, and the records of its edges: `requests` and
 * `audit`.
 */
export async function startBound(trust, mode, options = {}) {
  const [requests, audit] = [[], []];
  const note = (name, line) => {
    if (!name.startsWith("edge") || !line.startsWith("{")) return;
    const record = JSON.parse(line);
    if (record.target === "audit") audit.push(record);
    else if (record.message === "request")
      requests.push({
        method: record["http.request.method"],
        route: record["http.route"],
        status: record["http.response.status_code"],
        session: record["session.handle"],
      });
  };
  const stack = await startProduct({
    tls: true,
    host: HOST,
    onLine: note,
    ...options,
    edgeEnv: {
      ...trust.settings,
      EDGE_DEVICE_BOUND: `${mode}:${DURATION_SECS}`,
      LOG_FORMAT: "json",
      ...options.edgeEnv,
    },
  });
  const at = (route, status) => (record) =>
    record.route === route && (status === undefined || record.status === status);
  return {
    ...stack,
    audit,
    registrations: (status) => requests.filter(at("/api/auth/device/register", status)),
    refreshes: (status) => requests.filter(at("/api/auth/device/refresh", status)),
    /** The number of proofs at the first edge, by outcome. */
    async proofs() {
      const text = await (await fetch(`${stack.adminUrls.edge}/metrics`)).text();
      const counted = text.matchAll(/^device_proofs_total\{[^}]*outcome="(\w+)"[^}]*\} (\d+)$/gm);
      return Object.fromEntries([...counted].map(([, outcome, count]) => [outcome, Number(count)]));
    },
    /** Sends one request with these cookies from a program without the key. */
    ask: (path, cookies, headers = {}) => ask(trust, new URL(path, stack.edgeUrl), cookies, headers),
  };
}

function ask(trust, url, cookies, headers) {
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port: url.port,
      path: url.pathname + url.search,
      servername: url.hostname,
      ca: trust.ca,
      headers: { host: url.host, cookie, ...headers },
    };
    const answered = (response) => {
      response.resume();
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers }));
    };
    https.get(options, answered).on("error", reject);
  });
}

const common = (trust, binds) => ({
  executablePath: CHROMIUM,
  env: { ...process.env, HOME: trust.home },
  args: [
    ...["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
    "--host-resolver-rules=MAP *.test 127.0.0.1",
    ...(binds ? [`--enable-features=${KEYS_IN_SOFTWARE}`] : []),
  ],
});

/** A person's browser with a persistent profile. `binds`: it can bind sessions to its device (yes). */
export async function openProfile(trust, stack, name, { binds = true } = {}) {
  const context = await chromium.launchPersistentContext(join(trust.folder, name), {
    ...common(trust, binds),
    baseURL: stack.edgeUrl,
  });
  return observed(context, stack);
}

/** A private window of a browser that can bind sessions. */
export async function openPrivately(trust, stack) {
  const browser = await chromium.launch(common(trust, true));
  return observed(await browser.newContext({ baseURL: stack.edgeUrl }), stack, browser);
}

/** The window and its records: the edge's `answers`, and `bindings` as the browser reports them. */
async function observed(context, stack, browser = context) {
  context.setDefaultTimeout(STEP_MS);
  const answers = [];
  context.on("response", (response) => {
    const { origin, pathname } = new URL(response.url());
    answers.push({ origin, path: pathname, status: response.status(), response });
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const devtools = await context.newCDPSession(page);
  const bindings = [];
  devtools.on("Network.deviceBoundSessionEventOccurred", (event) => bindings.push(event));
  await devtools.send("Network.enable");
  await devtools.send("Network.enableDeviceBoundSessions", { enable: true });
  const cookie = async (name) => (await context.cookies(stack.edgeUrl)).find((one) => one.name === name);
  return {
    context,
    page,
    devtools,
    answers,
    bindings,
    cookies: () => context.cookies(stack.edgeUrl),
    session: () => cookie(SESSION),
    proof: () => cookie(PROOF),
    /** Whether the browser has called the provider since `answers` was last emptied. */
    askedProvider: () => answers.some(({ origin }) => origin === new URL(stack.issuer).origin),
    refreshed: () =>
      bindings.filter(({ refreshEventDetails }) => refreshEventDetails?.refreshResult === "Refreshed"),
    close: () => browser.close(),
  };
}

/** The status of a request from the page. */
export const fetched = (page, path = "/api/auth/me") =>
  page.evaluate(
    (url) => fetch(url, { headers: { accept: "application/json" } }).then(({ status }) => status),
    path,
  );

/** Serves a page at each of these hosts that links to `url`. */
export async function startLinks(url) {
  const server = http.createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(
      `<!doctype html><title>Other</title><link rel="icon" href="data:,"><a href="${url}">there</a>`,
    );
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { at: (host) => `http://${host}:${server.address().port}/`, stop: () => server.close() };
}
