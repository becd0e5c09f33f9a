import { en, type OperatorWords } from "./en";
export const ar: OperatorWords = en;
