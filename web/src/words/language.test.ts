import { expect, test } from "vitest";
import { ar } from "./ar";
import { en } from "./en";
import { preferredLanguage } from "./language";

test.each([
  [["ar-EG", "en"], "ar"],
  [["de", "ar"], "ar"],
  [["en-GB", "ar"], "en"],
  [["de-CH", "fr"], "en"],
  [[], "en"],
])("of %j the app speaks %s", (wanted, spoken) => {
  expect(preferredLanguage(wanted)).toBe(spoken);
});

/** Every text of a catalogue by its path; functions are called with something to put in. */
function texts(of: unknown, path = ""): [string, string][] {
  if (typeof of === "string") return [[path, of]];
  if (typeof of === "function") return [[path, String(of(3, "x"))]];
  return Object.entries(of as object).flatMap(([key, value]) => texts(value, `${path}.${key}`));
}

// What is a name or a code and therefore the same everywhere.
const SAME = new Set([".product"]);

test("every text is there in both languages, and none was left in the other's", () => {
  const english = new Map(texts(en));
  const arabic = new Map(texts(ar));
  expect([...arabic.keys()]).toEqual([...english.keys()]);
  for (const [path, text] of arabic) {
    expect(text.trim(), path).not.toBe("");
    if (!SAME.has(path) && path !== ".language" && path !== ".direction")
      expect(/\p{Script=Arabic}/u.test(text) || path === ".title", path).toBe(true);
  }
});

test("numbers take the plural their language has for them", () => {
  expect(ar.sessions.othersEnded(1)).toBe("انتهت جلسة واحدة.");
  expect(ar.sessions.othersEnded(2)).toBe("انتهت جلستان.");
  expect(ar.sessions.othersEnded(3)).toMatch(/جلسات/);
  expect(ar.sessions.othersEnded(11)).toMatch(/جلسة/);
  expect(en.sessions.othersEnded(1)).toBe("1 session is signed out.");
});
