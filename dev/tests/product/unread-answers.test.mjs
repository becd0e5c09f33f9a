// Clients call the session service and do not read its responses, within the memory of its pod. The service keeps
// running, rejects calls as overloaded, and still answers other clients.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { after, before, test } from 'node:test';

import { pause, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { field, fields, open } from './grpc.mjs';

const MEMORY = 128 << 20; // the pod's limit
const GROWTH_MAX = 64 << 20; // half of it: the rest is for the other data of a busy service
const SESSIONS = 60;
const CLAIM_BYTES = 55_000; // below the largest session that the service accepts
const STREAMS = 1_000;
const BATCH = 50; // sessions of one call
const CONNECTIONS = 4;
const LOOKED_AT_MS = 5_000;
const OVERLOADED = 8;

const [ISSUER, SUBJECT] = ['https://issuer.example', 'ada'];
let stack;
let id;

const claims = (about) => JSON.stringify({ sub: SUBJECT, about });

before(async () => {
  stack = await startStack({ limits: { session: MEMORY }, sessionEnv: { SESSION_MAX_PER_SUBJECT: '0' } });
  for (let at = 0; at < SESSIONS; at += 1) {
    const created = open(stack.sessionUrls[0], 'CreateSession', Buffer.concat([field(1, ISSUER), field(2, claims('a'.repeat(CLAIM_BYTES)))]));
    assert.equal((await created.ended).status, 0);
    id = fields(created.messages[0])[1].toString();
  }
});
after(() => stack?.stop());

const memory = () => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${stack.pid('session')}/status`, 'utf8'))[1]) * 1024;

const framed = (message) => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

const KINDS = {
  GetSession: () => [framed(field(1, id))],
  BatchGetSessions: () => [framed(Buffer.concat(Array(BATCH).fill(field(1, field(1, id)))))],
  RollSession: () => [framed(field(1, id))],
  ListSessions: () => [framed(Buffer.concat([field(1, ISSUER), field(2, SUBJECT)]))],
  WatchSessions: () => [framed(Buffer.alloc(0))],
  FollowSessions: () => [framed(field(1, Buffer.alloc(0))), ...Array.from({ length: 5 }, (_, at) => framed(Buffer.from([16, at + 1])))],
};

/** Calls over several connections with closed windows; returns the count of rejected calls and `hangUp`. */
async function ask(method) {
  const refused = { count: 0 };
  const sessions = [];
  for (let at = 0; at < CONNECTIONS; at += 1) {
    const session = http2.connect(stack.sessionUrls[0], { settings: { initialWindowSize: 0 } });
    session.on('error', () => {});
    await once(session, 'connect');
    sessions.push(session);
    for (let stream = 0; stream < STREAMS; stream += 1) {
      const call = session.request({
        ':method': 'POST', ':path': `/session.v1.SessionService/${method}`, 'content-type': 'application/grpc', te: 'trailers',
      });
      call.on('error', () => {});
      call.on('response', (headers) => { refused.count += Number(headers['grpc-status'] === String(OVERLOADED)); });
      for (const message of KINDS[method]()) call.write(message);
      if (method !== 'FollowSessions') call.end();
    }
  }
  return { refused, hangUp: () => sessions.forEach((session) => session.destroy()) };
}

for (const method of Object.keys(KINDS)) {
  test(`unread answers of ${method} take bounded memory, and others are answered`, async (t) => {
    const before = memory();
    let most = before;
    const looking = setInterval(() => { try { most = Math.max(most, memory()); } catch { most = Infinity; } }, 50);
    const { refused, hangUp } = await ask(method);
    const began = performance.now();
    let answered = 0;
    try {
      while (performance.now() - began < LOOKED_AT_MS) {
        const other = open(stack.sessionUrls[0], 'GetSession', field(1, id));
        assert.equal((await other.ended).status, 0, 'another caller is answered');
        answered += 1;
        await pause(50);
      }
    } finally {
      clearInterval(looking);
      hangUp();
      t.diagnostic(`${method}: ${(before / 2 ** 20).toFixed(0)} to ${(most / 2 ** 20).toFixed(0)} MiB, ${refused.count} refused, ${answered} answers to another`);
    }
    assert.ok(most - before < GROWTH_MAX, `${((most - before) / 2 ** 20).toFixed(0)} MiB more`);
    await until(10_000, async () => (await open(stack.sessionUrls[0], 'ListSessions', Buffer.concat([field(1, ISSUER), field(2, SUBJECT)])).ended).status === 0);
  });
}
