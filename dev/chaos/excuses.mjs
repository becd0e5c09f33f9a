// Which errors a fault excuses, and for how long after its end.

/** Whether a fault concerns one of these processes: the process itself, or a link to or from it. */
export const touches = ({ kind, target, from, to }, names) => ['restart-all', 'outage', 'slow-provider'].includes(kind) || [target, from, to].some((name) => names.includes(name));

/** Whether a fault concerns the session store. */
export const isOfStore = ({ target, from, to }) => [target, from, to].some((name) => /^(redis|data-\d|sentinel-\d)$/.test(name));

/** The time in an interval during which this process was stalled; any timer of the machine may be as late. */
export function stalledMs(stalls, begin, end) {
  return stalls.reduce((sum, stall) => sum + Math.max(0, Math.min(end, stall.end) - Math.max(begin, stall.begin)), 0);
}

const LOOKED_BACK_MS = 5_000;
const DEADLINE_MS = 450; // the product's shortest deadline: older events of a session service are stale

/** Whether the machine has just stalled for so long that the product could not keep any deadline. */
export const isOverloaded = (stalls, at) => stalledMs(stalls, at - LOOKED_BACK_MS, at) >= DEADLINE_MS;

/** The faults active in an interval, or over for at most `graceMs` plus the machine's stalls since. */
export function faultsWithin({ faults, stalls }, begin, end, graceMs = 0) {
  return faults.filter((fault) => fault.begin <= end && fault.end + graceMs + (graceMs && stalledMs(stalls, fault.end, begin)) >= begin);
}
