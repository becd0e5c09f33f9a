// The memory that sessions take in Redis.
import { spawnSync } from 'node:child_process';

import { Problem } from '../../dev/lib/build.mjs';

const SUM = "local sum, keys = 0, redis.call('KEYS', '*') for _, key in ipairs(keys) do sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') end return {sum, #keys}";

/**
 * {bytes, keys} in Redis, from its size of each key with its value. Its total memory says less: buffers and growing
 * hash tables take as much as a few hundred sessions.
 */
export function held(port) {
  const { stdout } = spawnSync('redis-cli', ['-p', String(port), 'EVAL', SUM, '0'], { encoding: 'utf8' });
  const [bytes, keys] = (stdout ?? '').trim().split('\n').map(Number);
  if (!(bytes >= 0 && keys >= 0)) throw new Problem(`redis-cli gave no figures: ${stdout}`);
  return { bytes, keys };
}
