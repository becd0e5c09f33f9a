// A Redis of one's own, as startStack makes it, and what sessions take in any.
import { spawnSync } from 'node:child_process';

import { Problem } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';
import { freePort, until } from '../../dev/lib/net.mjs';

/** Starts one without persistence: {port, pid, stop}. */
export async function startRedis() {
  const port = await freePort();
  const child = new Child('redis', 'redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction']);
  await until(5_000, () => child.output.includes('Ready to accept connections'), () => `redis did not start: ${child.tail()}`);
  return { port, pid: child.pid, stop: () => child.stop() };
}

const SUM = "local sum, keys = 0, redis.call('KEYS', '*') for _, key in ipairs(keys) do sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') end return {sum, #keys}";

/**
 * {bytes, keys} held now, as Redis counts what each key with its value takes. Its whole memory says less: buffers and the growth
 * of hash tables come to as much as a few hundred sessions.
 */
export function held(port) {
  const { stdout } = spawnSync('redis-cli', ['-p', String(port), 'EVAL', SUM, '0'], { encoding: 'utf8' });
  const [bytes, keys] = (stdout ?? '').trim().split('\n').map(Number);
  if (!(bytes >= 0 && keys >= 0)) throw new Problem(`redis-cli gave no figures: ${stdout}`);
  return { bytes, keys };
}
