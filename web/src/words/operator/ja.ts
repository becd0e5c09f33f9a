import { en, type OperatorWords } from "./en";
export const ja: OperatorWords = en;
