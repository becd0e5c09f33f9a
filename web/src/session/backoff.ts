/** Calculates the wait before the next request to a failing server. */

const FIRST_MS = 1_000;
// A person may be looking at the banner, so it stays at most half a minute after the outage has ended.
const LONGEST_MS = 30_000;

/**
 * Exponential, with jitter over the upper half, so that browsers that lost the server together do not retry
 * together. A server's Retry-After is the minimum wait, up to the same bound.
 */
export function retryDelayMs(
  attempt: number,
  retryAfterSeconds: number | null,
  random: () => number,
): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  const wanted = ceiling / 2 + (ceiling / 2) * random();
  const asked = Math.min(LONGEST_MS, (retryAfterSeconds ?? 0) * 1_000);
  return Math.round(Math.max(wanted, asked));
}
