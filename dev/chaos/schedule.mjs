// Which faults start when: a pure function of the seed. Faults come in bursts of one or two, with quiet periods
// between them in which the system must recover.
import { Random } from './random.mjs';

const FIRST_MS = 1_000;
const BURST = [1, 2]; // faults
const APART_MS = [0, 800]; // between the faults of a burst
const LASTS_MS = [300, 3_500];
const QUIET_MS = [4_000, 7_000];
const LATE_MS = [50, 1_000];
const SKEW_MS = 4_500; // below the allowed 5 s between pods: timestamp rounding and stalls take the rest

const EDGES = ['edge', 'edge-2'];
const DATA = ['data-1', 'data-2', 'data-3'];
const SENTINELS = ['sentinel-1', 'sentinel-2', 'sentinel-3'];

/** The processes, by the kind of store. */
const LAYOUTS = {
  redis: { services: ['session', 'session-2'], stores: ['redis'], links: [] },
  sentinel: {
    services: ['session', 'session-2'], stores: [...DATA, ...SENTINELS],
    links: [...each(DATA, DATA), ...each(SENTINELS, [...DATA, ...SENTINELS])].filter(({ from, to }) => from !== to),
  },
  file: { services: ['session'], stores: [], links: [] },
};

function each(froms, tos) {
  return froms.flatMap((from) => tos.map((to) => ({ from, to })));
}

/** The store of a seed: in turn Sentinels, the embedded store and a single Redis. */
export const topologyOf = (seed) => ['file', 'redis', 'sentinel'][seed % 3];

/** The processes of a topology, and all pairs that communicate. */
export function layoutOf(topology) {
  const { services, stores, links } = LAYOUTS[topology];
  return {
    edges: EDGES, services, stores,
    links: [
      ...each(['browser'], EDGES), ...each(EDGES, services), ...each(services, [...stores, 'idp']), ...each(EDGES, ['idp', 'upstream']), { from: 'idp', to: 'url' }, ...links,
    ],
  };
}

const eitherWay = (random, most) => random.pick([-1, 1]) * random.between(500, most);

/** Kinds of faults: the frequency of each, its targets, and the topologies that have it. */
const KINDS = {
  kill: [5, (random, { edges, services, stores }) => ({ target: random.pick([...edges, ...services, ...services, ...stores]) })],
  stop: [4, (random, { edges, services, stores }) => ({ target: random.pick([...edges, ...services, ...services, ...stores, 'idp']) })],
  restart: [2, (random, { edges, services }) => ({ target: random.pick([...edges, ...services, 'idp']) })],
  cut: [4, (random, { links }) => random.pick(links)],
  hold: [3, (random, { links }) => random.pick(links)],
  'hold-one-way': [3, (random, { links }) => ({ ...random.pick(links), direction: random.pick(['forward', 'back']) })],
  delay: [3, (random, { links }) => ({ ...random.pick(links), ms: random.between(...LATE_MS) })],
  'restart-all': [1, () => ({})],
  outage: [2, () => ({ target: 'idp' })],
  'slow-provider': [1, (random) => ({ target: 'idp', ms: random.between(...LATE_MS) })],
  'rotate-keys': [2, () => ({ target: 'idp' })],
  'new-keys': [4, () => ({})],
  clock: [3, (random, { edges, services }) => ({ target: random.pick([...edges, ...services]), ms: eitherWay(random, SKEW_MS) })],
  'full-memory': [3, () => ({ target: 'redis' }), ['redis']],
  'full-disk': [3, () => ({ target: 'session' }), ['file']],
  failover: [3, () => ({ target: 'master' }), ['sentinel']],
  'kill-master': [2, () => ({ target: 'master' }), ['sentinel']],
  'stop-master': [2, () => ({ target: 'master' }), ['sentinel']],
  isolate: [2, () => ({ target: 'master' }), ['sentinel']],
};

/** Faults as {at, lasts, kind, …}, `at` in milliseconds from the start; all kinds of the topology, or some. */
export function schedule(seed, seconds, { topology = topologyOf(seed), kinds = Object.keys(KINDS) } = {}) {
  const random = new Random(seed);
  const layout = layoutOf(topology);
  const possible = kinds.filter((kind) => !KINDS[kind][2] || KINDS[kind][2].includes(topology));
  const weights = Object.fromEntries(possible.map((kind) => [kind, KINDS[kind][0]]));
  const faults = [];
  for (let at = FIRST_MS; at <= seconds * 1_000 - APART_MS[1] - LASTS_MS[1]; at += random.between(...QUIET_MS)) {
    for (let left = random.between(...BURST); left > 0; left -= 1) {
      const kind = random.weighted(weights);
      faults.push({ at, lasts: random.between(...LASTS_MS), kind, ...KINDS[kind][1](random, layout) });
      at += random.between(...APART_MS);
    }
    at = Math.max(...faults.map((fault) => fault.at + fault.lasts));
  }
  return faults;
}

/** Whether a fault breaks the link between two processes. */
export function breaks({ kind, from, to }, one, other) {
  if (kind === 'isolate') return [one, other].every((name) => [...DATA, ...SENTINELS].includes(name));
  if (kind === 'outage' || kind === 'slow-provider') return other === 'idp';
  return from === one && to === other;
}

export const describe = ({ kind, target, from, to, direction, ms }) => (
  [kind, target ?? (from && `${from} to ${to}`), direction, ms && `${ms} ms`].filter(Boolean).join(' '));
