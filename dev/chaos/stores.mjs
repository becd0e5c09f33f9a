// The session stores by topology: how to start the stack on them, stop and restart their processes, and count keys.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

import { ask, startTopology } from '../lib/redis-topology.mjs';
import { field } from '../tests/product/grpc.mjs';
import { Caller } from '../failover.mjs';
import { keyFigures } from './growth.mjs';

/** One Redis that writes every command to disk before it answers: a restart loses nothing. */
function redis() {
  return {
    options: { store: 'redis', redisArgs: ['--appendfsync', 'always'] },
    keys: ({ ports }) => keyFigures(ports.redis),
    faults: {
      'full-memory': {
        begin: ({ ports }) => ask(ports.redis, 'CONFIG SET maxmemory 1mb'),
        end: ({ ports }) => ask(ports.redis, 'CONFIG SET maxmemory 0'),
      },
    },
  };
}

const DOWN_AFTER_MS = 3_000; // a server without CPU time for a moment is not down
const AGREEMENT_MS = 180_000;

/** A master with two replicas behind three Sentinels, as in docs/operating.md; a replica acknowledges endings. */
async function sentinel({ network, folder, front }) {
  const topology = await startTopology('sentinel', {
    front, onStart: network.know, logs: join(folder, 'logs'), downAfterMs: DOWN_AFTER_MS, agreementMs: AGREEMENT_MS,
  });
  const all = [...topology.servers, ...topology.sentinels];
  const named = (name) => all.find((one) => one.name === name);
  const others = (name) => all.filter((one) => one.name !== name).map((one) => one.name);
  const away = (kind) => ({
    begin: (_, { target }) => named(target).goDown(kind),
    async end(_, { target }) {
      await named(target).comeBack();
      await topology.settled();
    },
  });
  const between = (name, does) => Promise.all(others(name).flatMap((other) => [does(name, other), does(other, name)]));
  return {
    options: { store: topology.url },
    owns: (name) => Boolean(named(name)),
    master: async () => (await topology.master()).name,
    keys: async () => keyFigures((await topology.master()).port),
    settled: topology.settled,
    stop: topology.stop,
    faults: {
      kill: away('killed'),
      stop: away('frozen'),
      'kill-master': away('killed'),
      'stop-master': away('frozen'),
      failover: { begin: () => topology.fail('planned'), end: topology.settled },
      isolate: {
        begin: ({ network: links }, { target }) => between(target, (from, to) => links.hold(from, to)),
        async end({ network: links }, { target }) {
          await between(target, (from, to) => links.heal(from, to));
          await topology.settled();
        },
      },
    },
  };
}

/** The number of sessions of a world's people, from the service's lists. */
async function listed({ stack, accounts }) {
  const caller = new Caller(stack.sessionUrls[0]);
  let count = 0;
  for (const { sub } of accounts) {
    const { status, message } = await caller.call('ListSessions', Buffer.concat([field(1, stack.issuer), field(2, sub)]));
    if (status !== 0) throw new Error(`the sessions of ${sub} cannot be listed: ${status}`);
    count += message.length > 0 ? 1 : 0;
  }
  caller.close();
  return count > 0 ? { 'listed+': count } : {};
}

const limitFiles = (pid, most) => execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${most}:unlimited`]);

/** One session service with a file store; its disk is full when the file may not grow. */
function file({ folder }) {
  return {
    options: { store: 'file:' },
    keys: listed,
    faults: {
      'full-disk': {
        begin: ({ stack }) => limitFiles(stack.pid('session'), statSync(join(folder, 'sessions.redb')).size),
        end: ({ stack }) => limitFiles(stack.pid('session'), 'unlimited'),
      },
    },
  };
}

export const openStore = (topology, about) => ({ redis, sentinel, file })[topology](about);
