// Where a sign-in with a hostile returnTo ends, according to the browser itself.
import assert from "node:assert/strict";
import { test as runTest } from "node:test";
import { browserTests, signIn, signInAtProvider } from "./support.mjs";

// A hanging test must not hide the later ones: thirty sign-ins in one.
const TEST_MS = 240_000;
const test = (name, body) => runTest(name, { timeout: TEST_MS }, body);
const { stack: start, window } = browserTests();

const apart = () => start({ host: "localhost", edgeEnv: { EDGE_RATE_LIMIT_LOGIN: "0" } });

/** As in an address, with the encoding that a browser uses. */
const HOSTILE = [
  "https://evil.example/",
  "//evil.example/x",
  "///evil.example/x",
  "/\\evil.example/x",
  "\\\\evil.example/x",
  "/\\/evil.example/x",
  "/%09/evil.example",
  "/%0a/evil.example",
  "/%0d%0a/evil.example",
  "%20//evil.example",
  "%00//evil.example",
  "/.//evil.example",
  "/..//evil.example",
  "/%252e%252e//evil.example",
  "/%2e//evil.example",
  "/a/..//evil.example",
  "https:evil.example",
  "https:/evil.example",
  "http:%5C%5Cevil.example",
  "HTTPS://EVIL.EXAMPLE",
  "javascript:location='https://evil.example/'",
  "java%09script:location='https://evil.example/'",
  "data:text/html,<script>location='https://evil.example/'</script>",
  "blob:EDGE/x",
  "vbscript:x",
  "EDGE@evil.example/",
  "EDGE.evil.example/",
  "http://user:secret@HOST/account",
  "//evil.example%23@HOST/",
  "//evil%E3%80%82example/",
  "%EF%BC%8F%EF%BC%8Fevil.example",
  "/account%0d%0aLocation:%20https://evil.example/",
  "/account%0d%0aSet-Cookie:%20session=x",
  "https://HOST:1/",
  "ftp://HOST/",
];

const made = (stack) => {
  const { host } = new URL(stack.edgeUrl);
  return HOSTILE.map((text) => text.replace("EDGE", stack.edgeUrl).replace("HOST", host));
};

/** Every origin that the context's pages visited. */
function visited(context) {
  const origins = new Set();
  context.on("request", (request) => {
    if (request.isNavigationRequest()) origins.add(new URL(request.url()).origin);
  });
  return origins;
}

const stayed = (page, stack) => assert.equal(new URL(page.url()).origin, stack.edgeUrl);

// conformance: B-003
test("no returnTo leads a user who signs in to another site", async () => {
  const stack = await apart();
  const { context, page, expects } = await window(stack);
  expects(/status of 40[04]/);
  const origins = visited(context);
  await signIn(page, stack);
  for (const returnTo of made(stack)) {
    await page.goto(`/api/auth/login?returnTo=${returnTo.replaceAll("&", "%26").replaceAll("#", "%23")}`);
    stayed(page, stack);
    const [session] = (await context.cookies(stack.edgeUrl)).filter(({ name }) => name === "session");
    assert.match(session.value, /^[0-9a-f]{32}\./, returnTo);
  }
  assert.deepEqual([...origins].sort(), [stack.edgeUrl, stack.issuer].sort());
  await page.goto(`/api/auth/login?returnTo=${encodeURIComponent("/account/session?a=//evil.example#top")}`);
  assert.equal(
    page.url(),
    `${stack.edgeUrl}/account/session?a=//evil.example#top`,
    "what is ours is honoured",
  );
});

test("nor a user who signs out", async () => {
  const stack = await apart();
  const { context, page, expects } = await window(stack);
  expects(/status of 40[04]/);
  const origins = visited(context);
  for (const returnTo of made(stack)) {
    await page.goto(`/api/auth/logout?returnTo=${returnTo.replaceAll("&", "%26").replaceAll("#", "%23")}`);
    stayed(page, stack);
  }
  assert.deepEqual([...origins], [stack.edgeUrl]);
});

test("nor a guarded page whose own address looks like another's", async () => {
  const stack = await apart();
  const { context, page, expects } = await window(stack);
  expects(/status of 40[04]/);
  const origins = visited(context);
  await page.goto("/account/%2f%2fevil.example?returnTo=//evil.example/%2f..#//evil.example");
  if (page.url().startsWith(stack.issuer)) await signInAtProvider(page, stack);
  stayed(page, stack);
  assert.deepEqual(
    [...origins].filter((origin) => ![stack.edgeUrl, stack.issuer].includes(origin)),
    [],
  );
});
