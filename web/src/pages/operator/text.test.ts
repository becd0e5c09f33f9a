import { expect, test } from "vitest";
import { byteLength, cleanText } from "./text";

test.each([
  ["", 0],
  ["abc", 3],
  ["é", 2],
  ["محمد", 8],
  ["👩‍💻", 11],
])("%j has %i bytes", (text, bytes) => {
  expect(byteLength(text)).toBe(bytes);
});

test("line breaks and other control characters become a space", () => {
  expect(cleanText(" one\r\n\ttwo\u0000\u0085three ")).toBe("one two three");
});
