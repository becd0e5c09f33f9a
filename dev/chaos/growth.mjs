// What remains after all people have left: descriptors and memory of each process, and the store's keys by letter.
import { readdirSync, readFileSync } from 'node:fs';

import { ask } from '../lib/redis-topology.mjs';

const KB = 1_024;

/** Open descriptors and resident bytes of a process. */
export function processFigures(pid) {
  const kb = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, bytes: kb * KB };
}

// Letters are those of session-svc/src/store/redis/keys.rs, behind the prefix.
const MARK_MS = 600_000; // how long the mark of an ending is kept at most
const COUNT = [
  'local found = {}', "for _, key in ipairs(redis.call('KEYS', '*')) do", 'local letter = string.sub(key, 11, 11)',
  "local left = redis.call('PTTL', key)", `if left < 0 then letter = letter .. '!' elseif left > ${MARK_MS} then letter = letter .. '+' end`, 'found[letter] = (found[letter] or 0) + 1', 'end', 'return cjson.encode(found)',
].join(' ');

/** The number of keys by letter: `!` marks keys that never expire, `+` those that outlive the mark of an ending. */
export async function keyFigures(port) {
  const answer = await ask(port, `EVAL "${COUNT}" 0`);
  const [figures] = /\{.*\}/.exec(answer) ?? [];
  if (!figures) throw new Error(`Redis does not report its keys: ${answer || 'no answer'}`);
  return JSON.parse(figures);
}

/** Whether keys of this letter are leftovers. The stream of events stays; marks and leases expire. */
export const isLeft = (letter) => (letter.endsWith('!') ? letter !== 'e!' : ['i', 'o', 'i+', 'o+', 's+', 'listed+'].includes(letter));
