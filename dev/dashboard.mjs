// Draws the dashboard with what a real Prometheus has read of a real stack, without Grafana: to see whether its panels say something.
//
//   node dev/dashboard.mjs                     two minutes of people who come and go, and an outage of the store; writes .cache/dashboard.html and .png
//   node dev/dashboard.mjs --seconds 60
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { freePort, pause } from './lib/net.mjs';
import { startPrometheus, targetsOf } from './lib/prometheus.mjs';
import { sessionTls } from './lib/session-tls.mjs';
import { page } from './monitoring/drawing.mjs';
import { objectiveRules } from './monitoring/objectives.mjs';
import { people, SCRIPT } from './monitoring/people.mjs';
import { monitoring } from './monitoring/source.mjs';
import { ROOT, startStack } from './stack.mjs';
import { Client, request } from './tests/product/client.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '120' } } });
const SECONDS = Number(values.seconds);
const PEOPLE = 6;
const BODY_MAX = 1024;
const OUTAGE_MS = 6_000;

/** What goes wrong all day: callbacks of nobody, bodies that are too large, tokens that are none. */
async function mistakes(stack, isOver) {
  while (!isOver()) {
    await new Client().navigate(`${stack.edgeUrl}/api/auth/callback?state=lost`);
    await request(`${stack.edgeUrl}/open/1`, { method: 'POST', headers: SCRIPT, body: 'x'.repeat(2 * BODY_MAX) });
    await request(`${stack.edgeUrl}/machines/1`, { headers: { authorization: 'Bearer nothing' } });
    await pause(1000);
  }
}

/** Applications: one that answers, one that is not there. */
async function routesTo(file) {
  const shop = http.createServer((_, response) => response.end('shop'));
  await new Promise((listening) => shop.listen(0, '127.0.0.1', listening));
  shop.unref();
  const rule = (path, port, ...more) => ['[[route]]', `path = "/${path}/*"`, 'guard = "api"', `upstream = "http://127.0.0.1:${port}"`, ...more, ''].join('\n');
  writeFileSync(file, [rule('shop', shop.address().port), rule('open', shop.address().port).replace('"api"', '"none"'), rule('away', await freePort()), rule('machines', shop.address().port, '[route.bearer]', 'audience = "https://shop.example.test/"')].join(''));
  return file;
}

mkdirSync(join(ROOT, '.cache'), { recursive: true });
const source = await monitoring();
const routes = await routesTo(join(ROOT, '.cache/dashboard-routes.toml'));
const folder = mkdtempSync(join(tmpdir(), 'vestibule-dashboard-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
const tls = await sessionTls(folder);
const stack = await startStack({
  edges: 2, sessionServices: 2, store: 'redis', routes, ports: tls.ports, accessTokenTtl: 6, sessionEnv: { ...tls.sessionEnv, SESSION_ROLL_INTERVAL: '5' },
  edgeEnv: { ...tls.edgeEnv, EDGE_ACCESS_TOKEN_ENDPOINT: 'true', EDGE_RATE_LIMIT_LOGIN: '0', EDGE_MAX_BODY_BYTES: String(BODY_MAX) },
});
const groups = objectiveRules(source).spec.groups.map((group) => ({ ...group, interval: '5s' }));
const prometheus = await startPrometheus({ targets: targetsOf(stack), groups });
try {
  const end = Date.now() + SECONDS * 1000;
  const outage = async () => {
    await pause(SECONDS * 500);
    await stack.kill('redis', 'SIGKILL');
    await pause(OUTAGE_MS);
    await stack.start('redis');
  };
  const isOver = () => Date.now() > end;
  await Promise.all([outage(), mistakes(stack, isOver), people(PEOPLE, stack, (at) => `/${at % 7 === 0 ? 'away' : 'shop'}/${at}`, isOver)]);
  const ask = (query) => prometheus.range(query.replaceAll('$namespace', 'vestibule').replaceAll('[5m]', '[15s]'), SECONDS, Math.max(1, SECONDS / 60));
  const drawn = await page(source.rows, ask);
  const file = join(ROOT, '.cache/dashboard.html');
  writeFileSync(file, drawn.html);
  execFileSync('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', `--window-size=1400,${drawn.height}`, `--screenshot=${file.replace('.html', '.png')}`, `file://${file}`], { stdio: 'ignore' });
  process.stdout.write(`${file}\n${drawn.empty.length} panels without data: ${drawn.empty.join(', ')}\n`);
} finally {
  await prometheus.stop();
  await stack.stop();
}
