// Redis and Valkey from Debian with the users and settings of the manifests: a restart loses no session or ending.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Caller, creation } from '../../failover.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, until } from '../../lib/net.mjs';
import { ask } from '../../lib/redis-topology.mjs';
import { binary, ROOT } from '../../stack.mjs';
import { field, fields } from './grpc.mjs';

const SHIPPED = join(ROOT, 'k8s/components/redis/settings');
const START_MS = 20_000;
const SESSIONS = 100; // half of them created after the append-only file is rewritten
const EACH_ENDED = 5; // one in this many sessions is ended
const [OK, DEADLINE_EXCEEDED, NOT_FOUND, UNAVAILABLE] = [0, 4, 5, 14];
const ISSUER = 'http://127.0.0.1:9'; // the test sends no request there

/** A server with the manifests' configuration, but without TLS and replicas: `{start, stop, ask, url}`. */
async function server(engine, folder) {
  const [port, password] = [await freePort(), randomBytes(16).toString('hex')];
  const users = readFileSync(join(SHIPPED, 'users.acl'), 'utf8').split('\n').filter((line) => line.startsWith('user '));
  writeFileSync(join(folder, 'users.acl'), `${users.join('\n').replaceAll('PASSWORDS', `>${password}`)}\n`);
  const alone = ['--tls-replication', 'no', '--min-replicas-to-write', '0', '--bind', '127.0.0.1', '--port', String(port)];
  const askServer = (command) => ask(port, `AUTH administrator ${password}\r\n${command}`);
  let child;
  return {
    url: `redis://session-svc:${password}@127.0.0.1:${port}`,
    ask: askServer,
    stop: (signal) => child?.stop(signal),
    async start() {
      child = new Child('redis', `${engine}-server`, [join(SHIPPED, 'redis.conf'), ...alone, '--dir', folder, '--aclfile', join(folder, 'users.acl')]);
      await until(START_MS, async () => (await askServer('PING')).includes('+PONG'), () => `${engine} does not answer:\n${child.tail()}`);
    },
  };
}

for (const engine of ['redis', 'valkey']) {
  for (const signal of ['SIGTERM', 'SIGKILL']) {
    test(`${engine} ended by ${signal} keeps sessions and endings`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'vestibule-restart-'));
      const redis = await server(engine, folder);
      let [service, caller] = [];
      t.after(async () => {
        caller?.close();
        await service?.stop();
        await redis.stop('SIGKILL');
        rmSync(folder, { recursive: true, force: true });
      });
      await redis.start();
      const listen = `127.0.0.1:${await freePort()}`;
      service = new Child('session', binary('session-svc'), [], {
        env: {
          PATH: process.env.PATH, SESSION_LISTEN: listen, SESSION_ADMIN_LISTEN: 'off', SESSION_STORE: redis.url, SESSION_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
          OIDC_ISSUER_URL: ISSUER, OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: 'a secret of the client',
        },
      });
      caller = new Caller(`http://${listen}`);
      const call = (method, message) => until(START_MS, async () => {
        const answer = await caller.call(method, message);
        return ![UNAVAILABLE, DEADLINE_EXCEEDED].includes(answer.status) && answer;
      }, () => `the session service does not answer:\n${service.tail()}`);
      const sessions = [];
      for (let at = 0; at < SESSIONS; at += 1) {
        if (at === SESSIONS / 2) {
          await redis.ask('BGREWRITEAOF');
          await until(START_MS, async () => /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(await redis.ask('INFO persistence')), () => 'the rewrite does not end');
        }
        const { status, message } = await call('CreateSession', creation(ISSUER, `person ${at % 20}`));
        assert.equal(status, OK);
        sessions.push(fields(message)[1].toString());
      }
      for (let at = 0; at < SESSIONS; at += EACH_ENDED) assert.equal((await call('EndSession', field(1, sessions[at]))).status, OK);

      await redis.stop(signal);
      await redis.start();
      const found = [];
      for (const id of sessions) found.push((await call('GetSession', field(1, id))).status);
      assert.deepEqual(found, sessions.map((_, at) => (at % EACH_ENDED === 0 ? NOT_FOUND : OK)));
    });
  }
}
