// Ports, waiting for readiness, and the small balancer that stands before several edges.
import { randomInt } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';

const POLL_MS = 40;

// Below the range from which systems give outgoing connections their ports: one of those could take a port between
// its choice and its use.
const [PORT_MIN, PORT_MAX] = [12_000, 32_000];
const given = new Set(); // to somebody in this process, who may not listen there yet

/** A port of 127.0.0.1 that was free a moment ago, and another one each time. */
export async function freePort() {
  const port = randomInt(PORT_MIN, PORT_MAX);
  if (given.has(port)) return freePort();
  given.add(port);
  const server = net.createServer();
  const bound = await new Promise((resolve) => server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)));
  if (!bound) return freePort();
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

/** One GET on a fresh connection: `{status, body}`, or status 0 when nobody answered. */
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

/** Polls `attempt` until it gives something truthy; throws what `explain` says when `deadlineMs` have passed. */
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
 * Spreads connections over `targets` in turn and goes to the next one when a target refuses.
 * It copies bytes and understands none of them.
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
