// What happens to the pods, one event after another; contract.mjs says what of it people may notice. `run` resolves when it has
// happened: until all is as it should be again, measure.mjs waits.
import { pause } from '../net.mjs';
import { loseNode } from './node.mjs';
import { failover, roles } from './redis.mjs';
import { AUTHORITY, EVENTS as SECRET_EVENTS } from './secret-events.mjs';

const DOWN_MS = 8_000; // how long something is away or cut off
const BREATH_MS = 1_000; // for what was begun to be seen

/** Runs `during` for a while between two calls. */
async function forAWhile(begin, ms = DOWN_MS) {
  const end = await begin();
  try {
    await pause(ms);
  } finally {
    await end();
  }
}

const restart = (...names) => ({ cluster }) => {
  for (const name of names) cluster.workload(name).restart();
};

const kill = (name) => async ({ cluster }) => {
  for (const pod of cluster.podsOf(name)) {
    pod.kill();
    await pause(BREATH_MS);
    await cluster.settled();
  }
};

const evict = (name) => async ({ cluster }) => {
  cluster.podsOf(name)[0].delete();
  await pause(BREATH_MS);
};

const scale = (name) => async ({ cluster }) => {
  for (const replicas of [4, 2]) {
    cluster.workload(name).replicas = replicas;
    await cluster.settled();
    await pause(BREATH_MS);
  }
};

const cut = (choose) => (world) => forAWhile(async () => world.cluster.cut(...await choose(world)));

const one = (pods) => pods.slice(0, 1);

/** How the manifests of the version before write a listening address. Today's programs read it too. */
const asBefore = (template) => JSON.parse(JSON.stringify(template).replaceAll('[$(POD_IP)]', '$(POD_IP)'));

const toImage = (...steps) => async ({ cluster, imageOf }) => {
  for (const [name, version] of steps) {
    const workload = cluster.workload(name);
    if (version === 'previous') workload.template = asBefore(workload.template);
    workload.setImage(imageOf(name, version));
    await cluster.settled();
  }
};

/** Of the restarts that break something, and of upgrades: what has to be there before. */
const wholePrevious = toImage(['web', 'previous'], ['edge', 'previous'], ['session-svc', 'previous']);

export const EVENTS = [
  { name: 'nothing at all', run: () => pause(DOWN_MS) },
  ...['edge', 'session-svc', 'web', 'operator', 'redis', 'redis-sentinel'].map((name) => ({ name: `rolling restart of ${name}`, run: restart(name) })),
  { name: 'rolling restart of all at once', run: restart('edge', 'session-svc', 'web', 'redis', 'redis-sentinel') },

  ...['edge', 'session-svc', 'web'].map((name) => ({ name: `kill -9 of ${name}`, run: kill(name) })),
  { name: 'kill -9 of the master of Redis', run: async ({ cluster }) => { (await roles(cluster)).master.kill(); } },
  { name: 'kill -9 of a replica of Redis', run: async ({ cluster }) => { (await roles(cluster)).replicas[0].kill(); } },
  { name: 'kill -9 of a Sentinel', run: ({ cluster }) => cluster.podsOf('redis-sentinel')[0].kill() },

  { name: 'eviction of an edge', run: evict('edge') },
  { name: 'eviction of a session-svc', run: evict('session-svc') },
  { name: 'eviction of the master of Redis', run: async ({ cluster }) => { (await roles(cluster)).master.delete(); } },
  { name: 'eviction of a replica of Redis', run: async ({ cluster }) => { (await roles(cluster)).replicas[0].delete(); } },
  { name: 'failover of Redis', run: async ({ cluster }) => { await failover(cluster); await pause(DOWN_MS); } },
  {
    name: 'a frozen master of Redis',
    run: async ({ cluster }) => {
      const { master } = await roles(cluster);
      await forAWhile(() => master.freeze('redis'));
    },
  },
  {
    name: 'all of Redis and its Sentinels restarted at once',
    run: async ({ cluster }) => {
      for (const name of ['redis', 'redis-sentinel']) for (const pod of cluster.podsOf(name)) pod.delete();
      await pause(BREATH_MS);
    },
  },

  {
    name: 'a node lost, the master of Redis and one of everything else on it',
    run: async ({ cluster }) => {
      const pods = ['edge', 'session-svc', 'web', 'redis-sentinel'].map((name) => cluster.podsOf(name)[0]);
      await forAWhile(async () => loseNode(cluster, [...pods, (await roles(cluster)).master]));
    },
  },

  ...SECRET_EVENTS,

  ...['edge', 'session-svc', 'web'].map((name) => ({ name: `scaling ${name} 2 to 4 to 2`, run: scale(name) })),

  {
    name: 'provider down',
    run: async (world) => {
      const [provider] = world.cluster.podsOf('dev-idp');
      await forAWhile(async () => {
        provider.hold('dev-idp');
        await pause(BREATH_MS);
        world.say(`signing in meanwhile: ${(await world.clients.ask('status', { edgeUrl: world.edgeUrl, path: '/api/auth/login' })).status}`);
        return () => provider.release('dev-idp');
      });
    },
  },

  { name: 'one session-svc cut off from the edges', run: cut(({ cluster }) => [one(cluster.podsOf('session-svc')), cluster.podsOf('edge')]) },
  { name: 'every session-svc cut off from the edges', run: cut(({ cluster }) => [cluster.podsOf('session-svc'), cluster.podsOf('edge')]) },
  { name: 'one session-svc cut off from Redis', run: cut(({ cluster }) => [one(cluster.podsOf('session-svc')), [...cluster.podsOf('redis'), ...cluster.podsOf('redis-sentinel')]]) },
  { name: 'every session-svc cut off from Redis', run: cut(({ cluster }) => [cluster.podsOf('session-svc'), cluster.podsOf('redis')]) },
  { name: 'session-svc cut off from the Sentinels', run: cut(({ cluster }) => [cluster.podsOf('session-svc'), cluster.podsOf('redis-sentinel')]) },
  {
    name: 'the master of Redis cut off from everybody',
    run: cut(async ({ cluster }) => {
      const { master, replicas } = await roles(cluster);
      return [[master], [...replicas, ...cluster.podsOf('redis-sentinel'), ...cluster.podsOf('session-svc')]];
    }),
  },
  {
    name: 'the master of Redis cut off from its replicas and Sentinels',
    run: cut(async ({ cluster }) => {
      const { master, replicas } = await roles(cluster);
      return [[master], [...replicas, ...cluster.podsOf('redis-sentinel')]];
    }),
  },
  {
    name: 'a replica of Redis cut off from the master',
    run: cut(async ({ cluster }) => {
      const { master, replicas } = await roles(cluster);
      return [[master], one(replicas)];
    }),
  },
  { name: 'one web cut off from the edges', run: cut(({ cluster }) => [one(cluster.podsOf('web')), cluster.podsOf('edge')]) },
  { name: 'edges cut off from the provider', run: cut(({ cluster }) => [cluster.podsOf('edge'), cluster.podsOf('dev-idp')]) },
  { name: 'session-svc cut off from the provider', run: cut(({ cluster }) => [cluster.podsOf('session-svc'), cluster.podsOf('dev-idp')]) },

  { name: 'roll-back of everything', previous: true, run: wholePrevious },
  { name: 'upgrade: session-svc first, then edge', previous: true, before: wholePrevious, run: toImage(['session-svc', 'this'], ['edge', 'this'], ['web', 'this']) },
  { name: 'upgrade: edge first, then session-svc', previous: true, before: wholePrevious, run: toImage(['web', 'this'], ['edge', 'this'], ['session-svc', 'this']) },

  AUTHORITY,
];

/** What the short form of `make test` runs. */
export const SHORT = ['rolling restart of edge', 'rolling restart of session-svc', 'rolling restart of web', 'kill -9 of session-svc', 'eviction of the master of Redis'];
