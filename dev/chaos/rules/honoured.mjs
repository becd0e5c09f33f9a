// A session is a register that changes from "there" to "over" and never back. Reads may be a second old at most.
import { saysAlive, saysOver } from '../answers.mjs';
import { faultsWithin, isOfStore } from '../excuses.mjs';

export const BOUND_MS = 1_000; // from the response to an ending to the last response for its session, under any fault

export default {
  name: 'honoured',
  what: `no edge accepts an ended session for longer than ${BOUND_MS} ms, nor one that a response called over`,
  find(run) {
    // a failover may undo an ending that no replica acknowledged, even after responses showed it
    const isKept = (event, last) => run.topology !== 'sentinel' || !faultsWithin(run, event.begin, last).some(isOfStore);
    return [...run.sessions.values()].flatMap(({ name, who, endings, answers }) => {
      const over = [...endings.filter(({ end }) => end), ...answers.filter((event) => saysOver(event) && isKept(event, answers.at(-1).end)).map(({ end, edge }) => ({ end, why: `an answer at ${edge}` }))].sort((one, other) => one.end - other.end)[0];
      const late = over && answers.find((event) => (saysAlive(event) || event.set === name) && event.begin > over.end + BOUND_MS);
      return late ? [{ at: late.end, text: `session ${name} of ${who} ended (${over.why}), but ${late.kind} at ${late.edge} accepted it ${Math.round(late.begin - over.end)} ms later`, event: late }] : [];
    });
  },
};
