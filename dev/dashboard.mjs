// Draws the dashboard with what a real Prometheus has read of a real stack, without Grafana: to see whether its panels say something.
//
//   node dev/dashboard.mjs                     two minutes of people who come and go; writes .cache/dashboard.html and .png
//   node dev/dashboard.mjs --seconds 60
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { pause } from './lib/net.mjs';
import { startPrometheus, targetsOf } from './lib/prometheus.mjs';
import { page } from './monitoring/drawing.mjs';
import { objectiveRules } from './monitoring/objectives.mjs';
import { monitoring } from './monitoring/source.mjs';
import { ROOT, startStack } from './stack.mjs';
import { Client } from './tests/product/client.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '120' } } });
const SECONDS = Number(values.seconds);
const PEOPLE = 6;
const SCRIPT = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };

/** Somebody who signs in, looks at pages, has their token refreshed and leaves, again and again. */
async function person(stack, number, end) {
  while (Date.now() < end) {
    const client = new Client();
    await client.signIn(stack, { account: stack.accounts[number % stack.accounts.length] });
    for (let page = 0; page < 20 && Date.now() < end; page += 1) {
      await client.me(stack);
      await client.fetch(`${stack.edgeUrl}/`);
      if (page % 5 === number % 5) await client.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: SCRIPT });
      await pause(200 + 100 * number);
    }
    if (number % 2 === 0) await client.fetch(`${stack.edgeUrl}/api/auth/logout`, { method: 'POST', headers: SCRIPT });
    else await new Client().navigate(`${stack.edgeUrl}/api/auth/callback?state=lost`);
  }
}

const source = await monitoring();
const stack = await startStack({ edges: 2, sessionServices: 2, store: 'redis', accessTokenTtl: 63, edgeEnv: { EDGE_ACCESS_TOKEN_ENDPOINT: 'true', EDGE_RATE_LIMIT_LOGIN: '0' } });
const groups = objectiveRules(source).spec.groups.map((group) => ({ ...group, interval: '5s' }));
const prometheus = await startPrometheus({ targets: targetsOf(stack), groups });
try {
  const end = Date.now() + SECONDS * 1000;
  await Promise.all(Array.from({ length: PEOPLE }, (_, number) => person(stack, number, end)));
  const ask = (query) => prometheus.range(query.replaceAll('$namespace', 'vestibule').replaceAll('[5m]', '[15s]'), SECONDS, Math.max(1, SECONDS / 60));
  const drawn = await page(source.rows, ask);
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const file = join(ROOT, '.cache/dashboard.html');
  writeFileSync(file, drawn.html);
  execFileSync('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', `--window-size=1400,${drawn.height}`, `--screenshot=${file.replace('.html', '.png')}`, `file://${file}`], { stdio: 'ignore' });
  process.stdout.write(`${file}\n${drawn.empty.length} panels without data: ${drawn.empty.join(', ')}\n`);
} finally {
  await prometheus.stop();
  await stack.stop();
}
