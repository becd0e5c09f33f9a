// The time for histories, and the periods in which the machine stalled.

/** Milliseconds since the Unix epoch. A monotonic clock advances it, so that clock changes do not reorder events. */
export const now = () => Math.round((performance.timeOrigin + performance.now()) * 10) / 10;

const STALL_EVERY_MS = 20;
const STALL_MS = 100;

/** Calls `note({begin, end})` each time the machine stalled this process for a tenth of a second or more. */
export function watchStalls(note) {
  let due = performance.now() + STALL_EVERY_MS;
  const timer = setInterval(() => {
    const late = performance.now() - due;
    if (late >= STALL_MS) note({ begin: now() - late, end: now() });
    due = performance.now() + STALL_EVERY_MS;
  }, STALL_EVERY_MS);
  timer.unref(); // lets the process exit if the caller does not stop it after an error
  return () => clearInterval(timer);
}
