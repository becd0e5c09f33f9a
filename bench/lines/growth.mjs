// P8 and P9: what a session takes in Redis, and what reading and listing cost as sessions grow from a hundredth to all of them.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Problem } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';
import { freePort, until } from '../../dev/lib/net.mjs';
import { binary } from '../../dev/stack.mjs';
import { PROFILE } from '../lib/services.mjs';

export async function growth({ sessions, say, cleanup }) {
  const port = await freePort();
  const redis = cleanup(new Child('redis', 'redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']));
  await until(5_000, () => redis.output.includes('Ready to accept connections'), () => `redis did not start: ${redis.tail()}`);
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bench-'));
  try {
    const shared = await figures(`redis://127.0.0.1:${port}`, sessions, say);
    const embedded = await figures(`file:${join(folder, 'sessions.redb')}`, sessions, say);
    const bytes = Number(/(\d+) bytes a session, of (\d+) sealed/.exec(shared)?.[1]);
    const sealed = /of (\d+) sealed/.exec(shared)?.[1];
    return [
      { id: 'P8 bytes', work: 'a session in Redis, indexes and events included', unit: 'bytes', goal: '≤ 1300', median: bytes, text: `**${bytes}**`, detail: `${sealed} of them the sealed session` },
      ...['load', 'list'].flatMap((what) => [['Redis', shared], ['embedded', embedded]].map(([store, output]) => row(what, store, output, sessions))),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function row(what, store, output, sessions) {
  const found = [...output.matchAll(new RegExp(`${what}: ([\\d.]+) µs here, ([\\d.]+) µs in the server`, 'g'))].map(([, here, there]) => Number(here) + Number(there));
  if (found.length !== 3) throw new Problem(`no figures for ${what}:\n${output}`);
  const steps = [sessions / 100, sessions / 10, sessions];
  const ratio = found[2] / found[0];
  return { id: `P9 ${what} ${store}`, work: `${what} at ${steps.join(', ')} sessions`, unit: 'CPU µs', goal: 'flat within 15 %', median: found[2], text: found.map((value) => `**${value.toFixed(1)}**`).join(', '), detail: `${ratio.toFixed(2)} × from the first to the last` };
}

async function figures(store, sessions, say) {
  const child = spawn(binary('examples/store_figures', PROFILE), [store, String(sessions)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => { output += chunk; say(chunk.trimEnd()); });
  const code = await new Promise((resolve, reject) => { child.on('error', reject); child.on('close', resolve); });
  if (code !== 0) throw new Problem(`store_figures ended with ${code}`);
  return output;
}
