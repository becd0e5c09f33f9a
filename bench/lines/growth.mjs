// P8 and P9: the size of a session in Redis, and the cost of reads and lists from a hundredth of the sessions to all.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Problem } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';
import { freePort, until } from '../../dev/lib/net.mjs';
import { binary } from '../../dev/stack.mjs';
import { fixed } from '../lib/measure.mjs';
import { PROFILE } from '../lib/services.mjs';

const CALLERS = 32; // at once, as in P2

export async function growth({ sessions, say, cleanup }) {
  const port = await freePort();
  const redis = cleanup(new Child('redis', 'redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']));
  await until(5_000, () => redis.output.includes('Ready to accept connections'), () => `redis did not start: ${redis.tail()}`);
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bench-'));
  try {
    const shared = await figures(`redis://127.0.0.1:${port}`, sessions, say);
    const embedded = await figures(`file:${join(folder, 'sessions.redb')}`, sessions, say);
    const stored = [...shared.matchAll(/^(\d+) sessions;.*?(\d+) bytes a session, of (\d+) sealed/gms)].map((found) => found.slice(1).map(Number));
    if (stored.length < 2) throw new Problem(`no size of a session:\n${shared}`);
    const [[some, fewer], [most, least, sealed]] = stored.slice(-2);
    const stores = [['Redis', shared], ['embedded', embedded]];
    const more = stores.map(([store, text]) => [store, points(`load, ${CALLERS} callers`, text)]);
    const lines = ['load', 'list'].flatMap((what) => stores.map(([store, text]) => ({ id: `${what} ${store}`, points: points(what, text) })));
    return {
      rows: [
        { id: 'P8 bytes', work: `one of ${some} sessions in Redis, indexes and events included`, unit: 'bytes', ...fixed(fewer), note: `${sealed} of them the sealed session` },
        { id: 'P8 bytes of most', work: `one of ${most} sessions`, unit: 'bytes', ...fixed(least) },
        ...lines.map(({ id, points: all }) => ({ id: `P9 ${id}`, work: `${id}: what it costs at ${all.at(-1).sessions} sessions, times what at ${all[0].sessions}`, unit: '×', ...fixed(all.at(-1).micros / all[0].micros, 2) })),
        ...more.map(([store, all]) => ({
          id: `P9 more ${store}`, work: `what a load by one of ${CALLERS} callers costs more at ${all.at(-1).sessions} sessions than at ${all[0].sessions}, ${store}`, unit: 'CPU µs',
          ...fixed(all.at(-1).micros - all[0].micros, 1), note: `${all[0].micros.toFixed(1)} at ${all[0].sessions}`,
        })),
      ],
      series: { growth: lines },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** CPU time of an operation, in the process and in its server, at each number of sessions. */
function points(what, text) {
  const found = text.split(/^(?=\d+ sessions;)/m).filter((part) => /^\d+ sessions;/.test(part)).map((part) => {
    const [, here, there] = new RegExp(`${what}: ([\\d.]+) µs here, ([\\d.]+) µs in the server`).exec(part) ?? [];
    return { sessions: Number.parseInt(part, 10), micros: Number(here) + Number(there) };
  });
  if (found.length < 2 || found.some(({ micros }) => !(micros > 0))) throw new Problem(`no figures for ${what}:\n${text}`);
  return found;
}

async function figures(store, sessions, say) {
  const child = spawn(binary('examples/store_figures', PROFILE), [store, String(sessions)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => { output += chunk; say(chunk.trimEnd()); });
  const code = await new Promise((resolve, reject) => { child.on('error', reject); child.on('close', resolve); });
  if (code !== 0) throw new Problem(`store_figures ended with ${code}`);
  return output;
}
