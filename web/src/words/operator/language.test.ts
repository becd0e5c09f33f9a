import { expect, test } from "vitest";
import { Cause } from "../../gen/session/v1/session_pb";
import { ar } from "./ar";
import { de } from "./de";
import { en } from "./en";
import { es } from "./es";
import { fr } from "./fr";
import { ja } from "./ja";

/** Every text by its path; functions are called with something to put in. */
function texts(of: unknown, path = ""): [string, string][] {
  if (typeof of === "string") return [[path, of]];
  if (typeof of === "function") return [[path, String(of("3", false))]];
  return Object.entries(of as object).flatMap(([key, value]) => texts(value, `${path}.${key}`));
}

// Words that other languages share with English.
const SHARED = new Set(["fr .search.found"]);

test.each(Object.entries({ ar, de, es, fr, ja }))(
  "every text for operators is there in %s",
  (language, other) => {
    const english = new Map(texts(en));
    const translated = new Map(texts(other));
    expect([...translated.keys()]).toEqual([...english.keys()]);
    for (const [path, text] of translated) {
      expect(text.trim(), path).not.toBe("");
      if (!SHARED.has(`${language} ${path}`)) expect(text, path).not.toBe(english.get(path));
    }
  },
);

test("every cause of an ending has a text", () => {
  const causes = Object.values(Cause).filter(
    (cause) => typeof cause === "number" && cause !== Cause.UNSPECIFIED,
  );
  const codes = causes.map((cause) => Cause[cause as Cause].toLowerCase());
  expect(Object.keys(en.causes).sort()).toEqual(codes.sort());
});
