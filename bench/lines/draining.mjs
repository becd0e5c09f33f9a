// P-drain: requests lost while each of two edges in turn is stopped and started again under a fixed rate, over HTTP/1.1 and
// HTTP/2, on connections that are kept and on a new one for each request. The balancer follows readiness, goes to the other
// edge when it is refused a connection, and repeats nothing that was sent.
import http from 'node:http';
import http2 from 'node:http2';

import { fixed } from '../lib/measure.mjs';
import { releaseStack, signedIn } from '../lib/services.mjs';

const RATE = 1000;
const SECONDS_EACH = 10;
const PROBE_MS = 200;
const PATH = '/api/auth/me';

export async function draining({ say, cleanup }) {
  const stack = cleanup(await releaseStack({ store: 'redis', edges: 2, edgeEnv: { EDGE_DRAIN_DELAY: '2' } }));
  const { cookie } = await signedIn(stack);
  const edges = stack.edgeUrls.map((url, at) => ({ url, admin: stack.adminUrls[at === 0 ? 'edge' : `edge-${at + 1}`], ready: true }));
  const probing = setInterval(() => edges.forEach(follow), PROBE_MS);
  const clients = [http1(true), http1(false), overHttp2(true), overHttp2(false)];
  const lost = [];
  const tally = { sent: 0, answered: 0, elsewhere: 0 };

  /** One request, to another edge where a connection is refused. */
  async function one(number) {
    const ask = clients[number % clients.length];
    for (let attempt = 0; attempt < edges.length * 2; attempt += 1) {
      const ready = edges.filter((edge) => edge.ready);
      const among = ready.length > 0 ? ready : edges;
      const edge = among[(Math.floor(number / clients.length) + attempt) % among.length];
      try {
        const status = await ask(edge.url, cookie);
        if (status === 200) tally.answered += 1;
        else lost.push(`status ${status}`);
        return;
      } catch (error) {
        if (error.code !== 'ECONNREFUSED') {
          lost.push(error.code ?? error.message);
          return;
        }
        tally.elsewhere += 1;
      }
    }
    lost.push('refused everywhere');
  }

  const began = performance.now();
  const waiting = new Set();
  const pace = setInterval(() => {
    for (const due = Math.floor((performance.now() - began) * RATE / 1000); tally.sent < due; tally.sent += 1) {
      const asked = one(tally.sent).finally(() => waiting.delete(asked));
      waiting.add(asked);
    }
  }, 2);
  const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  try {
    for (const name of ['edge', 'edge-2']) {
      await pause((SECONDS_EACH * 1000) / 4);
      await stack.restart(name);
      await pause((SECONDS_EACH * 1000) / 4);
    }
  } finally {
    clearInterval(pace);
    clearInterval(probing);
  }
  const seconds = (performance.now() - began) / 1000;
  await Promise.all(waiting);
  clients.forEach((client) => client.close());
  const reached = tally.sent / seconds;
  const kinds = [...new Set(lost)].map((kind) => `${kind} ${lost.filter((other) => other === kind).length}`).join(', ');
  say(`P-drain: ${lost.length} of ${tally.sent} lost at ${reached.toFixed(0)}/s ${kinds}`);
  return { rows: [{
    id: 'P-drain', work: `requests lost while two edges are restarted one after the other at ${RATE} requests/s`, unit: 'requests', ...fixed(lost.length),
    note: `of ${tally.sent} at ${reached.toFixed(0)}/s; ${tally.answered} answered, ${tally.elsewhere} went to the other edge when refused${kinds && `; ${kinds}`}`,
  }] };
}

async function follow(edge) {
  edge.ready = await fetch(`${edge.admin}/readyz`).then(({ ok }) => ok, () => false);
}

/** A client by HTTP/1.1: gives the status of one request, whose answer is read to its end. */
function http1(keepAlive) {
  const agent = new http.Agent({ keepAlive, maxSockets: 64 });
  const ask = (url, cookie) => new Promise((resolve, reject) => {
    const request = http.get(url + PATH, { agent, headers: { cookie } }, (response) => {
      response.on('error', reject).on('end', () => resolve(response.statusCode)).resume();
    });
    request.on('error', reject);
  });
  ask.close = () => agent.destroy();
  return ask;
}

/** The same by HTTP/2. */
function overHttp2(keepAlive) {
  const sessions = new Map();
  const open = (url) => new Promise((resolve, reject) => {
    const session = http2.connect(url);
    session.once('connect', () => resolve(session)).once('error', reject);
    session.on('error', () => {});
  });
  async function session(url) {
    if (!keepAlive) return open(url);
    const known = sessions.get(url);
    if (known) {
      const there = await known;
      if (!there.closed && !there.destroyed) return there;
    }
    if (sessions.get(url) === known) {
      const opening = open(url);
      sessions.set(url, opening);
      opening.catch(() => sessions.delete(url));
    }
    return sessions.get(url);
  }
  const ask = async (url, cookie) => {
    const there = await session(url);
    return new Promise((resolve, reject) => {
      let status;
      const stream = there.request({ ':path': PATH, cookie });
      stream.on('response', (headers) => { status = headers[':status']; });
      stream.on('error', reject).on('end', () => resolve(status)).resume();
      stream.on('close', () => {
        if (status === undefined) reject(new Error('closed without an answer'));
        if (!keepAlive) there.close();
      });
    });
  };
  ask.close = () => sessions.forEach((one) => one.then((there) => there.destroy(), () => {}));
  return ask;
}
