// The time as histories tell it, and when the machine let nobody keep it.

/** Now, in milliseconds since the Unix epoch: of this machine's clock, counted on by a monotonic one so that nothing that sets it reorders what happens. */
export const now = () => Math.round((performance.timeOrigin + performance.now()) * 10) / 10;

const STALL_EVERY_MS = 20;
const STALL_MS = 100;

/** Tells `note({begin, end})` each time this process was late by a tenth of a second or more: what the machine did not let anybody do in time. */
export function watchStalls(note) {
  let due = performance.now() + STALL_EVERY_MS;
  const timer = setInterval(() => {
    const late = performance.now() - due;
    if (late >= STALL_MS) note({ begin: now() - late, end: now() });
    due = performance.now() + STALL_EVERY_MS;
  }, STALL_EVERY_MS);
  timer.unref(); // who forgets it, after an error, does not run on for it
  return () => clearInterval(timer);
}
