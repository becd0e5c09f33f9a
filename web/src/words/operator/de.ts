import { en, type OperatorWords } from "./en";
export const de: OperatorWords = en;
