// nextjs-auth0 from npm, in a production build of an application of one route, one process as `next start` runs it.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { installPackages, run } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';

const FOLDER = fileURLToPath(new URL('./next/', import.meta.url));
const NEXT = join(FOLDER, 'node_modules/next/dist/bin/next');
const SOURCES = ['auth0.mjs', 'proxy.js', 'next.config.mjs', 'app/profile/route.js', 'app/ready/route.js', 'package-lock.json'];
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };

async function installed(say) {
  await installPackages('bench/peers/next', say);
  const hash = createHash('sha256');
  for (const name of SOURCES) hash.update(readFileSync(join(FOLDER, name)));
  const mark = hash.digest('hex');
  const stamp = join(FOLDER, '.next/vestibule-sources');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === mark) return;
  say('building the application behind nextjs-auth0');
  await run(process.execPath, [NEXT, 'build'], { cwd: FOLDER, env, quiet: true });
  writeFileSync(stamp, mark);
}

let preparing;
export function prepareNext(say) {
  preparing ??= installed(say);
  return preparing;
}

/** Starts it: {pids, ended, tail, stop}, not yet ready. */
export function startNext(options) {
  const child = new Child('next', process.execPath, [NEXT, 'start', '--hostname', '127.0.0.1', '--port', String(options.port)], {
    cwd: FOLDER, env: { ...env, NODE_ENV: 'production', PEER: JSON.stringify(options) },
  });
  return { pids: () => [['node', child.pid]], ended: () => child.ended, tail: () => child.tail(), stop: () => child.stop() };
}
