// Bytes between edge and session service that come late: however steadily they come, a session that has ended is refused within a
// second, and nobody is signed out.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, test } from 'node:test';

import { freePort, pause, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';
import { field, open } from './grpc.mjs';

const HONOURED_MS = 1_000; // the contract's bound for a session that has ended, whatever breaks
const LATE_MS = 1_500;
const SETTLED_MS = 4_000; // what was sent in time has come, and what comes now is late
const JUST_BEGUN_MS = 300;
const ASK_EVERY_MS = 20;
const WATCHED_MS = 2_500;

/** Passes connections on to a port of loopback; `late.out` and `late.back` say by how many milliseconds bytes are held. */
async function startLateProxy(port) {
  const late = { out: () => 0, back: () => 0 };
  const sockets = new Set();
  const pass = (from, to, by) => {
    let free = 0; // no byte overtakes another
    from.on('data', (bytes) => {
      free = Math.max(free, performance.now() + by());
      setTimeout(() => to.writable && to.write(bytes), free - performance.now());
    });
    from.on('close', () => setTimeout(() => to.destroy(), Math.max(0, free - performance.now())));
    from.on('error', () => {});
  };
  const server = net.createServer((client) => {
    const service = net.connect(port, '127.0.0.1');
    for (const socket of [client, service]) sockets.add(socket.setNoDelay(true));
    pass(client, service, () => late.out());
    pass(service, client, () => late.back());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    late,
    url: `http://127.0.0.1:${server.address().port}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

let stack;
let proxy;

before(async () => {
  const session = await freePort();
  proxy = await startLateProxy(session);
  stack = await startStack({ ports: { session }, edgeEnv: { EDGE_SESSION_SVC_URL: proxy.url, EDGE_SESSION_CACHE_SECS: '60' } });
});
after(async () => {
  await stack?.stop();
  proxy?.stop();
});

const steady = () => LATE_MS;
const inTime = () => 0;
const growing = () => {
  const began = performance.now();
  return () => Math.min((performance.now() - began) / 2, 3_000);
};
const inBursts = () => LATE_MS - (performance.now() % LATE_MS);

const KINDS = {
  'both ways, steadily': () => [steady, steady],
  'from the service, steadily': () => [inTime, steady],
  'to the service, steadily': () => [steady, inTime],
  'from the service, in bursts': () => [inTime, inBursts],
  'from the service, later and later': () => [inTime, growing()],
  'both ways, later and later': () => [growing(), growing()],
};

for (const [kind, lateness] of Object.entries(KINDS)) {
  for (const settledMs of kind === 'from the service, steadily' ? [SETTLED_MS, JUST_BEGUN_MS] : [SETTLED_MS]) {
    test(`an ended session is refused within 1 s though bytes are late ${kind} (${settledMs} ms)`, async (t) => {
      const person = new Client();
      await person.signIn(stack);
      const cookie = person.sessionCookie(stack).join('=');
      const ask = () => request(`${stack.edgeUrl}/api/auth/me`, { headers: { cookie } });
      // Remembered, and heard: the second answer needs nobody.
      await until(10_000, async () => {
        const began = performance.now();
        return (await ask()).status === 200 && performance.now() - began < 100;
      });

      [proxy.late.out, proxy.late.back] = lateness();
      const answers = [];
      const pending = [];
      const send = () => {
        const at = performance.now();
        pending.push(ask().then(({ status }) => answers.push({ at, status }), () => {}));
      };
      const timer = setInterval(send, ASK_EVERY_MS);
      await pause(settledMs);
      const id = cookie.slice(cookie.indexOf('=') + 1).split('.')[0];
      const { status } = await open(stack.sessionUrls[0], 'EndSession', field(1, id)).ended;
      assert.equal(status, 0);
      const ended = performance.now();
      await pause(WATCHED_MS);
      clearInterval(timer);
      [proxy.late.out, proxy.late.back] = [inTime, inTime];
      await Promise.all(pending);

      const honoured = answers.filter(({ at, status: answered }) => answered === 200 && at > ended).map(({ at }) => at - ended);
      const longest = Math.max(0, ...honoured);
      t.diagnostic(`honoured for ${longest.toFixed(0)} ms, ${answers.length} answers`);
      assert.ok(longest < HONOURED_MS, `honoured for ${longest} ms`);
      // What was sent later may have reached the service after the end.
      const before = answers.filter(({ at }) => at < ended - 2 * LATE_MS).map(({ status: answered }) => answered);
      assert.ok(before.every((answered) => [200, 503, 429].includes(answered)), `nobody is signed out before: ${[...new Set(before)]}`);
    });
  }
}
