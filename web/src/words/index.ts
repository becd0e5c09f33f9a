/** The language the app speaks. */
import { en, type Words } from "./en";

export type { Words } from "./en";

export const words: Words = en;

document.documentElement.lang = words.language;
document.documentElement.dir = words.direction;
