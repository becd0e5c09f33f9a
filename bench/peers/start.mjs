// Peers of the benchmark on loopback: one development provider for all, each peer with a port, a folder and a Redis of its own.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Problem } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';
import { freePort, probe } from '../../dev/lib/net.mjs';
import { ROOT } from '../../dev/stack.mjs';
import { ACCOUNTS } from '../../dev/idp/lib/accounts.mjs';
import { Client } from '../../dev/tests/product/client.mjs';
import { startRedis } from '../lib/redis.mjs';

const READY_MS = 20_000;
const PATHS = { callback: '/api/auth/callback', profile: '/profile', ready: '/ready' };
const TOKEN_SECS = '3600'; // nothing is refreshed while it is measured

/** Gives these peers their ports and starts the provider that knows all their callbacks: {ports, idp, endpoints}. */
async function startProvider(peers, cleanup) {
  const ports = new Map();
  for (const peer of peers) ports.set(peer, await freePort());
  const callbacks = [...ports.values()].flatMap((port) => ['--redirect-uri', `http://127.0.0.1:${port}${PATHS.callback}`]);
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const child = cleanup(new Child('idp', process.execPath, [join(ROOT, 'dev/idp/server.mjs'), '--port', String(port), '--issuer', issuer, '--client-id', 'peers', '--access-token-ttl', TOKEN_SECS, ...callbacks]));
  const line = await Promise.race([child.firstLine, child.exited.then(() => { throw new Problem(`the provider did not start: ${child.tail()}`); })]);
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(line);
  const endpoints = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  return { ports, idp: { issuer, clientId, clientSecret }, endpoints };
}

/** Starts a peer's program and gives it with the milliseconds until it answered. */
async function launch(peer, options) {
  const began = performance.now();
  const running = peer.start(options);
  while ((await probe(`${options.origin}${PATHS.ready}`)).status !== 200) {
    if (running.ended() || performance.now() - began > READY_MS) {
      await running.stop();
      throw new Problem(`it did not become ready: ${running.tail()}`);
    }
  }
  return { running, took: performance.now() - began };
}

/** One peer, ready and with somebody signed in, as the line measures it; answers are of so many bytes. */
async function startPeer(peer, { port, idp, endpoints, bytes, cleanup }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-peer-'));
  cleanup({ stop: () => rmSync(folder, { recursive: true, force: true }) });
  const redis = peer.redis && cleanup(await startRedis());
  const origin = `http://127.0.0.1:${port}`;
  const options = { ...PATHS, port, origin, idp, endpoints, bytes, folder, secret: randomBytes(32).toString('hex'), redisPort: redis?.port, redisPid: redis?.pid };
  let { running } = await launch(peer, options);
  cleanup({ stop: () => running.stop() });
  const url = `${origin}${PATHS.profile}`;
  const signIn = async () => {
    const person = new Client();
    const { status, text } = await person.navigate(await person.authorize({ edgeUrl: origin, accounts: ACCOUNTS }, { login: PATHS.profile }));
    assert.ok([302, 307].includes(status), text);
    return [...person.cookies(origin)].map((pair) => pair.join('=')).join('; ');
  };
  return {
    ...peer, version: peer.version(), url, signIn, redisPort: redis?.port, pids: () => running.pids(), cookie: await signIn(),
    async restart() {
      await running.stop();
      const again = await launch(peer, options);
      running = again.running;
      return again.took;
    },
  };
}

/** Starts those that can be had: {started, missing: [{id, what, reason}]}. */
export async function startPeers(peers, { bytes, say, cleanup }) {
  const started = [];
  const missing = [];
  const without = (peer, error) => {
    say(`${peer.id} is not measured: ${error.message}`);
    missing.push({ ...peer, reason: error.message.trim().split('\n')[0] });
  };
  const there = [];
  for (const peer of peers) await peer.prepare(say).then(() => there.push(peer), (error) => without(peer, error));
  const { ports, ...provider } = await startProvider(there, cleanup);
  for (const peer of there) await startPeer(peer, { port: ports.get(peer), ...provider, bytes, cleanup }).then((one) => started.push(one), (error) => without(peer, error));
  return { started, missing };
}
