import { expect, test } from "vitest";
import { Cause } from "../gen/session/v1/session_pb";
import { ar } from "./ar";
import { de } from "./de";
import { en } from "./en";
import { es } from "./es";
import { fr } from "./fr";
import { ja } from "./ja";
import { LANGUAGES, preferredLanguage } from "./language";

const others = [ar, de, es, fr, ja];

test.each([
  [["ar-EG", "en"], "ar"],
  [["nl", "ar"], "ar"],
  [["en-GB", "ar"], "en"],
  [["de-CH", "fr"], "de"],
  [["pt-BR", "es-419"], "es"],
  [["JA"], "ja"],
  [["zh"], "en"],
  [[], "en"],
])("of %j the app speaks %s", (wanted, spoken) => {
  expect(preferredLanguage(wanted)).toBe(spoken);
});

test("every language of the switch has its words", () => {
  expect(["en", ...others.map(({ language }) => language)]).toEqual(Object.keys(LANGUAGES));
});

/** Every text of a catalogue by its path; functions are called with something to put in. */
function texts(of: unknown, path = ""): [string, string][] {
  if (typeof of === "string") return [[path, of]];
  if (typeof of === "function") return [[path, String(of(3, "x"))]];
  return Object.entries(of as object).flatMap(([key, value]) => texts(value, `${path}.${key}`));
}

// What is a name, a code or a frame around another text, and may therefore be the same everywhere.
const SAME = new Set([".product", ".title", ".language", ".direction"]);
// Words that other languages share with English.
const SHARED = new Set(["fr .nav.session", "fr .account.organization", "es .analytics.no"]);
const SCRIPTS: Record<string, RegExp> = {
  ar: /\p{Script=Arabic}/u,
  ja: /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u,
};

test.each(others)("every text is there in $language, and none was left in English", (other) => {
  const english = new Map(texts(en));
  const translated = new Map(texts(other));
  expect([...translated.keys()]).toEqual([...english.keys()]);
  const script = SCRIPTS[other.language];
  for (const [path, text] of translated) {
    expect(text.trim(), path).not.toBe("");
    if (SAME.has(path)) continue;
    if (script) expect(script.test(text), path).toBe(true);
    else if (!SHARED.has(`${other.language} ${path}`)) expect(text, path).not.toBe(english.get(path));
  }
});

test("every cause that can end an open session has a text", () => {
  const unsaid = new Set([Cause.UNSPECIFIED, Cause.ABANDONED, Cause.OTHER]);
  const causes = Object.values(Cause).filter((cause) => typeof cause === "number" && !unsaid.has(cause));
  const codes = causes.map((cause) => Cause[cause as Cause].toLowerCase());
  expect(Object.keys(en.ended.causes).sort()).toEqual(codes.sort());
});

test("numbers take the plural their language has for them", () => {
  expect(ar.sessions.othersEnded(1)).toBe("انتهت جلسة واحدة.");
  expect(ar.sessions.othersEnded(2)).toBe("انتهت جلستان.");
  expect(ar.sessions.othersEnded(3)).toMatch(/جلسات/);
  expect(ar.sessions.othersEnded(11)).toMatch(/جلسة/);
  expect(en.sessions.othersEnded(1)).toBe("1 session is signed out.");
  expect(de.sessions.othersEnded(2)).toBe("2 Sitzungen sind abgemeldet.");
  expect(fr.sessions.othersEnded(0)).toBe("0 session est déconnectée.");
  expect(es.sessions.othersEnded(1)).toBe("Se ha cerrado 1 sesión.");
});
