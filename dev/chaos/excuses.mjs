// What a fault excuses, and for how long after it is over.

/** Whether a fault has to do with one of these processes: it is at it, or at a link to or from it. */
export const touches = ({ kind, target, from, to }, names) => ['restart-all', 'outage', 'slow-provider'].includes(kind) || [target, from, to].some((name) => names.includes(name));

/** Whether a fault is of what keeps sessions. */
export const isOfStore = ({ target, from, to }) => [target, from, to].some((name) => /^(redis|data-\d|sentinel-\d)$/.test(name));

/** The time this process could not do anything itself in an interval: every timer of the machine may have been late by as much. */
export function stalledMs(stalls, begin, end) {
  return stalls.reduce((sum, stall) => sum + Math.max(0, Math.min(end, stall.end) - Math.max(begin, stall.begin)), 0);
}

const LOOKED_BACK_MS = 5_000;
const DEADLINE_MS = 450; // the product's shortest deadline: news of a session service that is older is none

/** Whether the machine has taken so much time just before that no deadline of the product's could be kept. */
export const isOverloaded = (stalls, at) => stalledMs(stalls, at - LOOKED_BACK_MS, at) >= DEADLINE_MS;

/** The faults that were there in an interval, or over for no longer than `graceMs` and what the machine stalled since. */
export function faultsWithin({ faults, stalls }, begin, end, graceMs = 0) {
  return faults.filter((fault) => fault.begin <= end && fault.end + graceMs + (graceMs && stalledMs(stalls, fault.end, begin)) >= begin);
}
