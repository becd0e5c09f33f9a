// Which faults come when: a pure function of the seed and of what there is. Faults come in bursts, one or two at a time, with quiet between
// them in which everything has to be well again.
import { Random } from './random.mjs';

const FIRST_MS = 1_000;
const BURST = [1, 2]; // faults
const APART_MS = [0, 800]; // between the faults of a burst
const LASTS_MS = [300, 3_500];
const QUIET_MS = [4_000, 7_000];
const LATE_MS = [50, 1_500];

const each = (froms, tos) => froms.flatMap((from) => tos.map((to) => ({ from, to })));
const EDGES = ['edge', 'edge-2'];
const SERVICES = ['session', 'session-2'];

/** Every pair of processes that talk to each other. */
export const LINKS = [
  ...each(['browser'], EDGES), ...each(EDGES, SERVICES), ...each(SERVICES, ['redis', 'idp']), ...each(EDGES, ['idp', 'upstream']), { from: 'idp', to: 'url' },
];

/** Kinds of faults: how often each comes, and what it is drawn from. */
const KINDS = {
  kill: [4, (random) => ({ target: random.pick([...EDGES, ...SERVICES, ...SERVICES, 'redis']) })],
  stop: [4, (random) => ({ target: random.pick([...EDGES, ...SERVICES, ...SERVICES, 'redis', 'idp']) })],
  restart: [2, (random) => ({ target: random.pick([...EDGES, ...SERVICES, 'idp']) })],
  cut: [4, (random) => random.pick(LINKS)],
  hold: [3, (random) => random.pick(LINKS)],
  'hold-one-way': [3, (random) => ({ ...random.pick(LINKS), direction: random.pick(['forward', 'back']) })],
  delay: [3, (random) => ({ ...random.pick(LINKS), ms: random.between(...LATE_MS) })],
  'restart-all': [1, () => ({})],
};

/** Faults as {at, lasts, kind, …}, `at` in milliseconds from the beginning. None begins in the last `quiet` of the run. */
export function schedule(seed, seconds, kinds = Object.keys(KINDS)) {
  const random = new Random(seed);
  const weights = Object.fromEntries(kinds.map((kind) => [kind, KINDS[kind][0]]));
  const faults = [];
  for (let at = FIRST_MS; at < seconds * 1_000 - LASTS_MS[1]; at += random.between(...QUIET_MS)) {
    for (let left = random.between(...BURST); left > 0; left -= 1) {
      const kind = random.weighted(weights);
      faults.push({ at, lasts: random.between(...LASTS_MS), kind, ...KINDS[kind][1](random) });
      at += random.between(...APART_MS);
    }
    at = Math.max(...faults.map((fault) => fault.at + fault.lasts));
  }
  return faults;
}

export const describe = ({ kind, target, from, to, direction, ms }) => (
  [kind, target ?? (from && `${from} to ${to}`), direction, ms && `${ms} ms`].filter(Boolean).join(' '));
