import { en, type OperatorWords } from "./en";
export const es: OperatorWords = en;
