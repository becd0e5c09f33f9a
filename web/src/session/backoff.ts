/** How long to wait before asking a failing server again. */

const FIRST_MS = 1_000;
// Somebody may be looking at the banner: half a minute is the longest an outage may outlive itself on screen.
const LONGEST_MS = 30_000;

/**
 * Exponential with full jitter over the upper half, so that browsers which lost the server together do not come
 * back together. A server's own wish (Retry-After) is the least it waits, up to the same bound.
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
