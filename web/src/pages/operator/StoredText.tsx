import type { RefObject } from "react";
import { TextField } from "../../ui/Field";
import { inDigits, operatorWords } from "../../words/operator";
import { byteLength, cleanText, MOST_BYTES } from "./text";

export interface StoredTextProps {
  label: string;
  hint: string;
  value: string;
  onValue: (value: string) => void;
  /** Whether it must not be empty. */
  required?: boolean;
  rows?: number;
  focus?: RefObject<HTMLElement | null>;
}

/** A text that the service stores, with a count of its bytes. */
export function StoredText({ value, required = false, ...rest }: StoredTextProps) {
  const used = byteLength(cleanText(value));
  const over = used > MOST_BYTES;
  const said = operatorWords.bytes(inDigits(used), inDigits(MOST_BYTES));
  const problem = over
    ? operatorWords.purpose.long
    : required && used === 0
      ? operatorWords.purpose.missing
      : "";
  return <TextField {...rest} value={value} problem={problem} count={{ said, over }} autoComplete="off" />;
}
