// No user is signed out without a cause.
import { saysOver } from '../answers.mjs';
import { isOfStore } from '../excuses.mjs';

const LAG_MS = 4_000; // min-replicas-max-lag + 1 s: how long an isolated master accepts writes (docs/operating.md)
const SILENT = ['stop', 'stop-master', 'isolate', 'hold', 'hold-one-way', 'delay'];
const CONNECTED_MS = 50; // the replication lag of a master at its kill

/** Whether a failover may have lost this sign-in: Redis replicates after it has acknowledged. */
const mayBeLost = ({ faults, topology }, { created }) => topology === 'sentinel' && faults.filter(isOfStore).some(({ kind, begin }) => (
  created.end >= begin - CONNECTED_MS && created.begin <= begin + (SILENT.includes(kind) ? LAG_MS : CONNECTED_MS)));

export default {
  name: 'signed-out',
  what: 'no user is signed out without a cause, and no acknowledged sign-in is lost',
  find(run) {
    return [...run.sessions.values()].filter((session) => !mayBeLost(run, session)).flatMap(({ name, who, endings, answers }) => {
      const first = answers.find((event) => (saysOver(event) || (event.set === 'cleared' && event.kind !== 'sign-out')) && !endings.some(({ begin }) => begin <= event.end));
      return first ? [{ at: first.end, text: `session ${name} of ${who} is over by ${first.kind} at ${first.edge} without a cause`, event: first }] : [];
    });
  },
};
