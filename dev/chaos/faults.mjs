// How each kind of fault is applied and undone.
import { now } from '../lib/clock.mjs';
import { pause } from '../lib/net.mjs';
import { rotateKeys } from './provider-keys.mjs';

/** Ends a process, and starts it again when the fault is over. */
const down = (signal) => ({
  begin: ({ stack }, { target }) => stack.kill(target, signal),
  end: ({ stack }, { target }) => stack.start(target),
});

const link = (begin) => ({
  begin: ({ network }, { from, to, ...fault }) => begin(network, from, to, fault),
  end: ({ network }, { from, to }) => network.heal(from, to),
});

const everyone = ({ edges, services }) => [...edges, ...services];

/** A change to every link to the provider. */
const toProvider = (does) => ({
  begin: (world, { ms }) => Promise.all(everyone(world).map((from) => does(world.network, from, ms))),
  end: (world) => Promise.all(everyone(world).map((from) => world.network.heal(from, 'idp'))),
});

const FAULTS = {
  kill: down('SIGKILL'),
  restart: down('SIGTERM'),
  stop: {
    begin: ({ stack }, { target }) => process.kill(stack.pid(target), 'SIGSTOP'),
    end: ({ stack }, { target }) => process.kill(stack.pid(target), 'SIGCONT'),
  },
  cut: link((network, from, to) => network.cut(from, to)),
  hold: link((network, from, to) => network.hold(from, to)),
  'hold-one-way': link((network, from, to, { direction }) => network.hold(from, to, direction)),
  delay: link((network, from, to, { ms }) => network.delay(from, to, ms)),
  'restart-all': {
    begin: (world) => Promise.all(everyone(world).map((name) => world.stack.kill(name, 'SIGTERM'))),
    end: (world) => Promise.all(everyone(world).map((name) => world.stack.start(name))),
  },
  outage: toProvider((network, from) => network.cut(from, 'idp')),
  'slow-provider': toProvider((network, from, ms) => network.delay(from, 'idp', ms)),
  'rotate-keys': {
    begin: ({ stack }) => stack.kill('idp', 'SIGTERM'),
    end({ stack, folder }) {
      rotateKeys(folder);
      return stack.start('idp');
    },
  },
  'new-keys': {
    begin: (world, { lasts }) => world.rings.bringToFront(lasts / everyone(world).length),
    end: ({ rings }) => rings.areRead(),
  },
  clock: {
    begin: ({ clocks }, { target, ms }) => clocks.set(target, ms),
    end: ({ clocks }, { target }) => clocks.set(target, 0),
  },
};

/** How this world applies a fault; the store applies faults of its own. */
function makerOf({ store }, { kind, target }) {
  const own = store.faults[kind];
  return own && (!FAULTS[kind] || store.owns?.(target)) ? own : FAULTS[kind];
}

/** What a fault locks. Faults with the same lock run one after another, as do faults of a replicated store. */
function heldBy(world, { kind, target, from, to }) {
  // A process that starts in between would at once sign with a key that others have not read yet.
  if (['restart-all', 'new-keys'].includes(kind)) return everyone(world);
  if (kind === 'outage' || kind === 'slow-provider') return ['idp', ...everyone(world).map((one) => `${one}>idp`)];
  if ([target, from, to].some((name) => name === 'master' || world.store.owns?.(name))) return ['store'];
  return [target ?? `${from}>${to}`];
}

/** Applies the faults of a schedule at their times and undoes them. Resolves when all are over. */
export async function makeFaults(world, history, faults, onFault) {
  const began = performance.now();
  const busy = new Map(); // lock → time until which it is held
  await Promise.all(faults.map(async (planned) => {
    await pause(Math.max(0, began + planned.at - performance.now()));
    const names = heldBy(world, planned);
    const before = names.map((name) => busy.get(name));
    let release;
    const held = new Promise((resolve) => { release = resolve; });
    names.forEach((name) => busy.set(name, held));
    await Promise.all(before);
    const fault = planned.target === 'master' ? { ...planned, target: await world.store.master() } : planned;
    const { at: _, lasts, ...about } = fault;
    const event = { type: 'fault', ...about, begin: now() };
    onFault(fault);
    const { begin, end } = makerOf(world, fault);
    try {
      await begin(world, fault);
      await pause(lasts);
      await end(world, fault);
    } finally {
      history.add({ ...event, end: now() });
      release();
    }
  }));
}
