/** Chooses the app's language: the person's choice, or the first of the browser's languages that the app has. */

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

/** Stores the choice and loads the page again, because every word and every format on it changes. */
export function chooseLanguage(language: Language): void {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Without storage the choice is lost when the page loads again.
  }
  window.location.reload();
}
