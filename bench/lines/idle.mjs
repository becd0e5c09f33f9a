// P8: memory of connections that are open and unused, and of account pages that watch their sessions, each in an edge
// without a memory limit. Then both under the limit of the shipped pod, with as many pages as its connections allow.
// The edge closes the connections that are unused for the longest.
import http from 'node:http';
import http2 from 'node:http2';

import { shippedLimit } from '../../dev/lib/cgroup.mjs';
import { probe } from '../../dev/lib/net.mjs';
import { personOf } from '../../dev/idp/lib/accounts.mjs';
import { ROOT } from '../../dev/stack.mjs';
import { fixed, residentMiB } from '../lib/measure.mjs';
import { releaseStack, signedIn } from '../lib/services.mjs';

const IDLE_MS = 12_000;
const LOOK_MS = 250; // a pod is probed, and its metrics are read
const AT_ONCE = 100;
const CONNECTIONS = 10_000;
const HTTP2_CONNECTIONS = 2_000;
const PAGES = 1_000;
const PAGES_OF_PERSON = 20;
const PAGES_IN_POD = 500;
const MANY_CLIENTS = { EDGE_TRUSTED_PROXIES: '127.0.0.0/8' };

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Opens `count` things, some at once. Refused and closed ones leave the result. */
async function many(count, open) {
  const opened = new Set();
  for (let at = 0; at < count; at += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - at) }, async (_, more) => {
      const one = await open(at + more);
      opened.add(one);
      if (one.destroyed) opened.delete(one);
      one.once('close', () => opened.delete(one));
      one.on('error', () => {});
    }));
  }
  return opened;
}

/** A connection that has had one answer. */
const overHttp1 = (stack) => () => new Promise((resolve, reject) => {
  const agent = new http.Agent({ keepAlive: true });
  http.get(`${stack.edgeUrl}/api/auth/status`, { agent }, (answer) => {
    const { socket } = answer;
    answer.resume().on('end', () => resolve(socket));
  }).on('error', reject);
});

const overHttp2 = (stack) => () => new Promise((resolve, reject) => {
  const session = http2.connect(stack.edgeUrl).on('error', reject);
  const stream = session.request({ ':path': '/api/auth/status' });
  stream.on('error', reject).on('end', () => resolve(session)).resume();
});

/** An account page: one stream of events, over a connection of its own. */
const page = (stack, cookies) => (number) => new Promise((resolve, reject) => {
  const headers = { cookie: cookies[number % cookies.length], 'content-type': 'application/grpc-web+proto', 'x-csrf': '1', 'sec-fetch-site': 'same-origin' };
  const sent = http.request(`${stack.edgeUrl}/session.v1.BrowserSessionService/WatchMySession`, { method: 'POST', headers, agent: false }, (answer) => {
    if (answer.headers['grpc-status']) reject(new Error(`a page: ${answer.headers['grpc-message']}`));
    answer.once('data', () => resolve(answer.socket)).resume();
  });
  sent.on('error', reject).end(Buffer.alloc(5));
});

/** The memory in bytes of each opened thing in these processes, after it was unused for a while. */
async function cost(stack, names, count, open) {
  const used = () => Object.fromEntries(names.map((name) => [name, residentMiB(stack.pid(name)) * 1024 ** 2]));
  const before = used();
  const opened = await many(count, open);
  await probed(stack, names);
  const after = used();
  const stayed = opened.size;
  for (const one of opened) one.destroy();
  if (stayed !== count) throw new Error(`${count - stayed} of ${count} were closed`);
  return Object.fromEntries(names.map((name) => [name, (after[name] - before[name]) / count]));
}

/** Waits as long as a connection has to be unused. */
async function probed(stack, names) {
  const until = Date.now() + IDLE_MS;
  while (Date.now() < until) {
    await Promise.all(names.map((name) => probe(`${stack.adminUrls[name]}/metrics`)));
    await pause(LOOK_MS);
  }
}

async function signedInPeople(stack, count) {
  const cookies = [];
  for (let at = 0; at < count; at += 1) cookies.push((await signedIn(stack, { account: personOf(at + 1) })).cookie);
  return cookies;
}

export async function idle({ say, cleanup }) {
  const rows = [];
  const record = (id, work, bytes) => {
    say(`P8 ${id}: ${(bytes / 1024).toFixed(1)} KiB`);
    rows.push({ id: `P8 ${id}`, work, unit: 'KiB', ...fixed(bytes / 1024, 1) });
  };
  const people = PAGES / PAGES_OF_PERSON;
  const start = async (more) => cleanup(await releaseStack({ store: 'memory:', edgeEnv: MANY_CLIENTS, people, ...more }));

  const one = await start();
  record('idle', `an unused HTTP/1.1 connection, of ${CONNECTIONS}`, (await cost(one, ['edge'], CONNECTIONS, overHttp1(one))).edge);
  const two = await start();
  record('idle HTTP/2', `an unused HTTP/2 connection, of ${HTTP2_CONNECTIONS}`, (await cost(two, ['edge'], HTTP2_CONNECTIONS, overHttp2(two))).edge);
  const three = await start();
  const cookies = await signedInPeople(three, people);
  const pages = await cost(three, ['edge', 'session'], PAGES, page(three, cookies));
  record('page', `an account page with its stream, of ${PAGES}: edge`, pages.edge);
  record('page session', 'the same: session service', pages.session);

  const limit = shippedLimit(`${ROOT}/k8s/base/edge/deployment.yaml`);
  const pod = await start({ limits: { edge: limit } });
  const inPod = await signedInPeople(pod, people);
  const watching = await many(PAGES_IN_POD, page(pod, inPod));
  const open = await many(CONNECTIONS, overHttp1(pod));
  await probed(pod, ['edge']);
  const used = pod.group('edge').used() / 1024 ** 2;
  say(`P8 pod: ${open.size} connections and ${watching.size} pages stay open, ${used.toFixed(1)} MiB`);
  rows.push({ id: 'P8 pod', work: `${CONNECTIONS} connections and ${PAGES_IN_POD} account pages under the limit of the shipped pod: the edge`, unit: 'MiB', ...fixed(used, 1), note: `${open.size} connections and ${watching.size} pages stay open` });
  for (const opened of [...watching, ...open]) opened.destroy();
  return { rows };
}
