/** Writes times and durations in words. Uses only `Intl`. */
import { words } from "./index";

const relative = new Intl.RelativeTimeFormat(words.language);
const now = new Intl.RelativeTimeFormat(words.language, { numeric: "auto" }).format(0, "second");
const exact = new Intl.DateTimeFormat(words.language, { dateStyle: "full", timeStyle: "medium" });
const whole = new Intl.NumberFormat(words.language, { useGrouping: false });
const twoDigits = new Intl.NumberFormat(words.language, { minimumIntegerDigits: 2 });
const brief = new Intl.DateTimeFormat(words.language, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(words.language, { timeStyle: "short" });
const precise = new Intl.DateTimeFormat(words.language, { dateStyle: "medium", timeStyle: "medium" });

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number, number])[] = [
  ["second", SECOND_MS, MINUTE_MS],
  ["minute", MINUTE_MS, HOUR_MS],
  ["hour", HOUR_MS, DAY_MS],
  ["day", DAY_MS, Number.POSITIVE_INFINITY],
];

/** "3 minutes ago", "in 23 hours", "now": uses the largest unit that is not zero. */
export function fromNow(ms: number, nowMs: number): string {
  const span = ms - nowMs;
  if (Math.abs(span) < 10 * SECOND_MS) return now;
  for (const [unit, unitMs, nextMs] of UNITS) {
    const count = Math.round(span / unitMs);
    // 59.6 seconds are a minute, and never 60 seconds.
    if (Math.abs(count) * unitMs < nextMs) return relative.format(count, unit);
  }
  return now;
}

/** The whole date and time, for a hover. */
export const exactly = (ms: number): string => exact.format(ms);

/** Date and time for a line of text. */
export const briefly = (ms: number): string => brief.format(ms);

/** Date and time to the second, for a label that must be unique. */
export const preciselyAt = (ms: number): string => precise.format(ms);

/** The time of the day, for an event within minutes. */
export const atClock = (ms: number): string => clock.format(ms);

/** A countdown, "1:05"; never below zero. */
export function countdown(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / SECOND_MS));
  return `${whole.format(Math.floor(seconds / 60))}:${twoDigits.format(seconds % 60)}`;
}
