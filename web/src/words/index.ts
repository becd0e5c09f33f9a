/**
 * The texts of the app in the chosen language. English is part of the app. For another language, this module waits
 * for its texts, so that no code runs without them. If they do not load, the texts are English.
 */
import { en, type Words } from "./en";
import { currentLanguage, type Language } from "./language";

export type { Words } from "./en";

const others: Record<Exclude<Language, "en">, () => Promise<Words>> = {
  ar: () => import("./ar").then(({ ar }) => ar),
  de: () => import("./de").then(({ de }) => de),
  es: () => import("./es").then(({ es }) => es),
  fr: () => import("./fr").then(({ fr }) => fr),
  ja: () => import("./ja").then(({ ja }) => ja),
};

const language = currentLanguage();

export const words: Words = language === "en" ? en : await others[language]().catch(() => en);

document.documentElement.lang = words.language;
document.documentElement.dir = words.direction;

/** The text for a code from outside; undefined for an unknown code. */
export function wordFor<T extends Record<string, string>>(texts: T, code: string): string | undefined {
  return Object.hasOwn(texts, code) ? texts[code] : undefined;
}
