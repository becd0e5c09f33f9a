// P7: time until all edges refuse an ended session: three edges, two session services, Redis; and the worst case, an
// edge whose connections to the session services hang.
import net from 'node:net';

import { freePort, until } from '../../dev/lib/net.mjs';
import { Client, request } from '../../dev/tests/product/client.mjs';
import { fixed, h2load, quantile } from '../lib/measure.mjs';
import { releaseStack, signedIn } from '../lib/services.mjs';

const RATE = 500;
const LOAD_SECS = 20;
const HANGS = 10;

export async function ending({ say, cleanup }) {
  const stack = cleanup(await releaseStack({ store: 'redis', edges: 3, sessionServices: 2, edgeEnv: { EDGE_SESSION_CACHE_SECS: '30' } }));
  // Requests of another user all the while; no edge may refuse one.
  const { cookie: bystander } = await signedIn(stack);
  let loaded = true;
  const load = Promise.all(stack.edgeUrls.map((url) => h2load({ url: `${url}/api/auth/me`, headers: { cookie: bystander }, http1: true, rate: RATE, seconds: LOAD_SECS, clients: 4 })));
  load.finally(() => { loaded = false; }).catch(() => {});
  const heard = [];
  while (loaded) heard.push(...await refusedAfter(stack, stack.edgeUrls));
  const served = (await load).reduce((sum, { requests }) => sum + requests, 0);
  say(`P7: p99 ${quantile(heard, 0.99).toFixed(1)} ms`);

  // An edge behind a proxy that can hang: its streams stay open and silent.
  const lines = await Promise.all(stack.sessionUrls.map((url) => hangingLine(Number(new URL(url).port))));
  lines.forEach((line) => cleanup(line));
  const hung = cleanup(await releaseStack({
    store: stack.store, edgeEnv: { EDGE_SESSION_CACHE_SECS: '30', EDGE_SESSION_SVC_URL: lines.map(({ port }) => `http://127.0.0.1:${port}`).join(',') },
    secrets: stack.secrets,
  }));
  const [all, one] = [[], []]; // streams that hang
  for (let round = 0; round < HANGS; round += 1) {
    const { cookie } = await known(stack, [hung.edgeUrl]);
    // One hanging stream alone has no effect: the other still delivers the ending.
    lines.slice(round % 2).forEach((line) => line.hang());
    await end(stack, cookie);
    const began = performance.now();
    let served = 0; // time of the last answer that still accepted the session
    await until(10_000, async () => {
      if ((await me(hung.edgeUrl, cookie)).status !== 200) return true;
      served = performance.now() - began;
      return false;
    }, () => 'a session that ended is still served');
    (round % 2 === 0 ? all : one).push(served);
    lines.forEach((line) => line.resume());
  }
  say(`P7 cut: one stream ${Math.max(...one).toFixed(0)} ms, all ${Math.max(...all).toFixed(0)} ms`);
  const work = 'a session that ended is refused by every edge';
  const hanging = 'longest an ended session was served by an edge of which';
  return { rows: [
    { id: 'P7', work: `${work}: p99`, unit: 'ms', ...fixed(quantile(heard, 0.99), 1), note: `${heard.length / 2} endings under ${RATE} requests/s on each of three edges; all ${served} of a bystander were served` },
    { id: 'P7 median', work: `${work}: median`, unit: 'ms', ...fixed(quantile(heard, 0.5), 1) },
    { id: 'P7 worst', work: `${work}: worst`, unit: 'ms', ...fixed(Math.max(...heard), 1) },
    { id: 'P7 all hang', work: `${hanging} all streams hang`, unit: 'ms', ...fixed(Math.max(...all)), note: `${all.length} hangs` },
    { id: 'P7 one hangs', work: `${hanging} one stream hangs`, unit: 'ms', ...fixed(Math.max(...one)), note: `${one.length} hangs` },
  ] };
}

const me = (edgeUrl, cookie) => request(`${edgeUrl}/api/auth/me`, { headers: { cookie } });

/** A fresh session that all these edges have in memory. */
async function known(stack, edgeUrls) {
  const person = new Client();
  await person.signIn(stack);
  const [name, value] = person.sessionCookie(stack);
  const cookie = `${name}=${value}`;
  for (const url of edgeUrls) for (let time = 0; time < 2; time += 1) await me(url, cookie);
  return { cookie };
}

const end = (stack, cookie) => request(`${stack.edgeUrls[0]}/api/auth/logout`, { headers: { cookie, 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' } });

/** Milliseconds from the answer to the sign-out until each of the other edges refuses. */
async function refusedAfter(stack, edgeUrls) {
  const { cookie } = await known(stack, edgeUrls);
  await end(stack, cookie);
  const began = performance.now();
  return Promise.all(edgeUrls.slice(1).map(async (url) => {
    while ((await me(url, cookie)).status === 200) { /* asked again at once */ }
    return performance.now() - began;
  }));
}

/** A proxy to a port that can stop forwarding while its connections stay open. */
async function hangingLine(target) {
  const port = await freePort();
  const open = new Set();
  let hanging = false;
  const server = net.createServer((client) => {
    const upstream = net.connect(target, '127.0.0.1');
    for (const [from, to] of [[client, upstream], [upstream, client]]) {
      open.add(from);
      if (hanging) from.pause();
      from.on('data', (chunk) => { to.write(chunk); });
      from.on('close', () => { open.delete(from); to.destroy(); });
      from.on('error', () => to.destroy());
    }
  });
  await new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  return {
    port,
    hang() { hanging = true; for (const socket of open) socket.pause(); },
    resume() { hanging = false; for (const socket of open) socket.resume(); },
    stop: () => new Promise((resolve) => { server.close(resolve); for (const socket of open) socket.destroy(); }),
  };
}
