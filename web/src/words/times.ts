/** Moments and spans in words, by `Intl` alone. */
import { words } from "./index";

const relative = new Intl.RelativeTimeFormat(words.language, { numeric: "auto" });
const exact = new Intl.DateTimeFormat(words.language, { dateStyle: "full", timeStyle: "medium" });
const whole = new Intl.NumberFormat(words.language, { useGrouping: false });
const twoDigits = new Intl.NumberFormat(words.language, { minimumIntegerDigits: 2 });
const brief = new Intl.DateTimeFormat(words.language, { dateStyle: "medium", timeStyle: "short" });

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** "3 minutes ago", "in 23 hours", "now": the largest unit of which there is more than one and a half. */
export function fromNow(ms: number, nowMs: number): string {
  const span = ms - nowMs;
  const size = Math.abs(span);
  const said = (unitMs: number, unit: Intl.RelativeTimeFormatUnit) =>
    relative.format(Math.round(span / unitMs), unit);
  if (size < 10 * SECOND_MS) return relative.format(0, "second");
  if (size < 90 * SECOND_MS) return said(SECOND_MS, "second");
  if (size < 90 * MINUTE_MS) return said(MINUTE_MS, "minute");
  if (size < 36 * HOUR_MS) return said(HOUR_MS, "hour");
  return said(DAY_MS, "day");
}

/** The whole date and time, for a hover. */
export const exactly = (ms: number): string => exact.format(ms);

/** Date and time for a line of text. */
export const briefly = (ms: number): string => brief.format(ms);

/** A countdown, "1:05"; never below zero. */
export function countdown(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / SECOND_MS));
  return `${whole.format(Math.floor(seconds / 60))}:${twoDigits.format(seconds % 60)}`;
}
