import { expect, test } from "vitest";
import { retryDelayMs } from "./backoff";

test.each([
  [0, null, 0, 500],
  [0, null, 1, 1_000],
  [3, null, 0.5, 6_000],
  [60, null, 1, 30_000],
  [0, 7, 0, 7_000],
  [0, 86_400, 0, 30_000],
])("attempt %i, asked %s s, random %d waits %i ms", (attempt, asked, random, expected) => {
  expect(retryDelayMs(attempt, asked, () => random)).toBe(expected);
});
