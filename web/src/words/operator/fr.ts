import { en, type OperatorWords } from "./en";
export const fr: OperatorWords = en;
