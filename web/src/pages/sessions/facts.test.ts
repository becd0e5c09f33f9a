import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { SessionSchema } from "../../gen/session/v1/session_pb";
import { labelsOf, ownFacts, saySharedFacts, sharedFacts } from "./facts";

const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36";
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
let handles = 0;
const session = (userAgent: string, address = "192.0.2.1", startMs = 1_700_000_000_000) =>
  create(SessionSchema, {
    handle: String(++handles),
    createdAt: timestampFromMs(startMs),
    createdOn: { userAgent, address },
  });

test.each([
  ["everything", [session(CHROME), session(CHROME)], "Chrome on Linux\u00a0· 192.0.2.1", ["", ""]],
  ["the system", [session(CHROME, "a"), session(FIREFOX, "b")], "Linux", ["Chrome", "Firefox"]],
  ["nothing, for there is one alone", [session(CHROME)], "", ["Chrome on Linux"]],
  ["the address", [session(CHROME), session("curl/8.5")], "192.0.2.1", ["Chrome on Linux", "curl"]],
  [
    "nothing, for one is unknown",
    [session(CHROME, ""), session("", "")],
    "",
    ["Chrome on Linux", "Unknown browser"],
  ],
])("sessions that share %s", (_, sessions, said, devices) => {
  const shared = sharedFacts(sessions);
  expect(saySharedFacts(shared)).toBe(said);
  expect(sessions.map((one) => ownFacts(one, shared).device)).toEqual(devices);
});

test("labels name browser, system and time, and no two are the same", () => {
  const sessions = [session(CHROME), session(CHROME), session(CHROME, "", 1_700_000_001_000)];
  const labels = [...labelsOf(sessions).values()];
  expect(labels[0]).toMatch(/^Chrome on Linux, started Nov 1\d, 2023, \d+:\d\d:20\s[AP]M$/);
  expect(labels[1]).toBe(`${labels[0]} (2)`);
  expect(new Set(labels).size).toBe(3);
});
