/** Which language the app speaks: the one the person chose, or the first of the browser's that there is. */

/** The languages, each by its own name. The font of the switch has the glyphs that many machines lack. */
export const LANGUAGES = {
  en: "English",
  ar: "العربية",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  ja: "日本語",
} as const;

export type Language = keyof typeof LANGUAGES;

const KEY = "language";
const isLanguage = (word: unknown): word is Language =>
  typeof word === "string" && Object.hasOwn(LANGUAGES, word);

export function preferredLanguage(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const [language] = tag.toLowerCase().split("-");
    if (isLanguage(language)) return language;
  }
  return "en";
}

export function currentLanguage(): Language {
  try {
    const chosen = localStorage.getItem(KEY);
    if (isLanguage(chosen)) return chosen;
  } catch {
    // Storage is blocked: the browser's languages decide.
  }
  return preferredLanguage(navigator.languages);
}

/** Remembers the choice and loads the page again: every word and every format on it changes. */
export function chooseLanguage(language: Language): void {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Without storage there is nothing to come back to: the choice cannot last.
  }
  window.location.reload();
}
