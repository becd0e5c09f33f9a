// How each kind of fault is made and taken back.
import { pause } from '../lib/net.mjs';
import { now } from './history.mjs';

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

export const FAULTS = {
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
};

/** What a fault takes hold of: two of the same thing at once come one after the other. */
const heldBy = (world, { kind, target, from, to }) => {
  if (kind === 'restart-all') return everyone(world);
  return [target ?? `${from}>${to}`];
};

/** Makes the faults of a schedule, each at its time, and takes them back. Gives when all are over. */
export async function makeFaults(world, history, faults, onFault) {
  const began = performance.now();
  const busy = new Map(); // what is held → until when it is
  await Promise.all(faults.map(async (fault) => {
    await pause(Math.max(0, began + fault.at - performance.now()));
    const names = heldBy(world, fault);
    const before = names.map((name) => busy.get(name));
    let release;
    const held = new Promise((resolve) => { release = resolve; });
    names.forEach((name) => busy.set(name, held));
    await Promise.all(before);
    const { at: _, lasts, ...about } = fault;
    const event = { type: 'fault', ...about, begin: now() };
    onFault(fault);
    try {
      await FAULTS[fault.kind].begin(world, fault);
      await pause(lasts);
      await FAULTS[fault.kind].end(world, fault);
    } finally {
      history.add({ ...event, end: now() });
      release();
    }
  }));
}
