import { expect, test } from "vitest";
import { countdown, fromNow } from "./times";

const MINUTE = 60_000;
test.each([
  [0, "now"],
  [-30_000, "30 seconds ago"],
  [-59_400, "59 seconds ago"],
  [-59_600, "1 minute ago"],
  [-MINUTE, "1 minute ago"],
  [-89_000, "1 minute ago"],
  [-3 * MINUTE, "3 minutes ago"],
  [-59.6 * MINUTE, "1 hour ago"],
  [60 * MINUTE, "in 1 hour"],
  [23 * 60 * MINUTE, "in 23 hours"],
  [-23.6 * 60 * MINUTE, "1 day ago"],
  [7 * 24 * 60 * MINUTE, "in 7 days"],
])("%i ms from now is %s", (span, said) => {
  expect(fromNow(1_000_000 + span, 1_000_000)).toBe(said);
});

test.each([
  [65_000, "1:05"],
  [400, "0:01"],
  [-5, "0:00"],
])("%i ms left is %s", (left, said) => {
  expect(countdown(left)).toBe(said);
});
