/** The texts of the operators' pages in the chosen language. If they do not load, the texts are English. */
import { words } from "../index";
import { currentLanguage, type Language } from "../language";
import { en, type OperatorWords } from "./en";

export type { OperatorWords } from "./en";

const others: Record<Exclude<Language, "en">, () => Promise<OperatorWords>> = {
  ar: () => import("./ar").then(({ ar }) => ar),
  de: () => import("./de").then(({ de }) => de),
  es: () => import("./es").then(({ es }) => es),
  fr: () => import("./fr").then(({ fr }) => fr),
  ja: () => import("./ja").then(({ ja }) => ja),
};

const language = currentLanguage();

export const operatorWords: OperatorWords = language === "en" ? en : await others[language]().catch(() => en);

const whole = new Intl.NumberFormat(words.language);
const seconds = new Intl.DateTimeFormat(words.language, { timeStyle: "medium" });

/** A count, with the separators of the language. */
export const inDigits = (count: number): string => whole.format(count);

/** The time of the day to the second, for a list of events. */
export const toTheSecond = (ms: number): string => seconds.format(ms);
