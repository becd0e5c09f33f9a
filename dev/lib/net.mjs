// Ports, readiness checks, and the small balancer in front of several edges.
import { randomInt } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';

const POLL_MS = 40;

// Below the range from which systems give outgoing connections their ports: one of those could take a port between
// its choice and its use.
const [PORT_MIN, PORT_MAX] = [12_000, 32_000];
const BLOCK = 100; // ports that one process chooses from
const left = []; // of the block

/** Listens on a port of 127.0.0.1; undefined if something else does. */
async function held(port) {
  const server = net.createServer();
  const bound = await new Promise((resolve) => server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)));
  return bound ? server.unref() : undefined;
}

/**
 * Returns a port of 127.0.0.1 that was free a moment ago, a different one each time. This process listens on the first
 * port of its block, so that no other process takes the port of a server that is down for a moment.
 */
export async function freePort() {
  while (left.length === 0) {
    const first = PORT_MIN + BLOCK * randomInt((PORT_MAX - PORT_MIN) / BLOCK);
    if (await held(first)) left.push(...Array.from({ length: BLOCK - 1 }, (_, at) => first + BLOCK - 1 - at));
  }
  const port = left.pop();
  const server = await held(port);
  if (!server) return freePort();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Whether something already listens on this port of 127.0.0.1. */
export async function portTaken(port) {
  const server = net.createServer();
  return new Promise((resolve) => {
    server.once('error', (error) => resolve(error.code === 'EADDRINUSE' || error.code === 'EACCES'));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(false)));
  });
}

/** Sends one GET on a new connection: `{status, body}`, or status 0 without a response. */
export function probe(url, timeoutMs = 1500) {
  return new Promise((resolve) => {
    const request = http.get(url, { agent: false, timeout: timeoutMs }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => { body += chunk; }).on('end', () => resolve({ status: response.statusCode, body }));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', (error) => resolve({ status: 0, body: error.message }));
  });
}

export const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Polls `attempt` until its result is truthy; after `deadlineMs` throws the text of `explain`. */
export async function until(deadlineMs, attempt, explain) {
  const end = Date.now() + deadlineMs;
  for (;;) {
    const result = await attempt();
    if (result) return result;
    if (Date.now() > end) throw new Error(explain());
    await pause(POLL_MS);
  }
}

/**
 * Spreads connections over `targets` in turn, and tries the next one if a target refuses.
 * It copies bytes without parsing them.
 */
export async function startBalancer(port, targets) {
  let turn = 0;
  const open = new Set();
  const server = net.createServer((client) => {
    open.add(client);
    client.on('close', () => open.delete(client)).on('error', () => client.destroy());
    const first = turn;
    turn += 1;
    const connect = (attempt) => {
      if (attempt === targets.length) return client.destroy();
      let joined = false;
      const upstream = net.connect(targets[(first + attempt) % targets.length], '127.0.0.1');
      upstream.on('connect', () => {
        joined = true;
        client.pipe(upstream).pipe(client);
      });
      upstream.on('error', () => (joined ? client.destroy() : connect(attempt + 1)));
      client.on('close', () => upstream.destroy());
      return undefined;
    };
    connect(0);
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    stop: () => new Promise((resolve) => {
      server.close(resolve);
      for (const client of open) client.destroy();
    }),
  };
}
