// Raises every alert by real faults of a real stack, with windows of seconds, and does what the runbooks say until each is over. Mounts a disk of its own, as root.
//
//   node dev/alerts.mjs                   prints fault by fault what was raised after how long, and what went when it was mended
//   node dev/alerts.mjs --only token      the faults with this word in their names
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { freePort, pause, until } from './lib/net.mjs';
import { startPrometheus, targetsOf } from './lib/prometheus.mjs';
import { sessionTls } from './lib/session-tls.mjs';
import { faults, LEASE_S } from './monitoring/faults.mjs';
import { objectiveRules } from './monitoring/objectives.mjs';
import { people } from './monitoring/people.mjs';
import { monitoring } from './monitoring/source.mjs';
import { startStack } from './stack.mjs';

const { values: { only } } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const PEOPLE = 5;
const RAISED_MS = 120_000;
const OVER_MS = 120_000;
const WINDOW = '15s';
const SLOW_MS = 1200;
const AUDIT_DISK = '64m';
const say = (text) => process.stdout.write(`${text}\n`);

/** The same rules, looking back for seconds. */
const shortened = (groups) => groups.map(({ name, rules }) => ({
  name,
  interval: '1s',
  rules: rules.map((rule) => ({ ...rule, expr: rule.expr.replaceAll(/\[\d+[mhd]\]/g, `[${WINDOW}]`), ...(rule.for && { for: '2s' }) })),
}));

/** Of what was made here. */
function cleanUp() {
  execFileSync('umount', [auditDisk]);
  rmSync(folder, { recursive: true, force: true });
}

/** An application that can be slow, or leave and come back to the same address. */
async function startApplication() {
  let delay = 0;
  const server = http.createServer((request, response) => { setTimeout(() => response.end('shop'), request.url.startsWith('/slow') ? SLOW_MS : delay); });
  const port = await freePort();
  const comeBack = () => new Promise((listening) => { server.listen(port, '127.0.0.1', listening); });
  const leave = () => { server.close(); server.closeAllConnections(); };
  await comeBack();
  return { port, comeBack, leave, delay: (ms) => { delay = ms; } };
}

const folder = mkdtempSync(join(tmpdir(), 'vestibule-alerts-'));
const source = await monitoring();
const groups = [...source.groups, ...objectiveRules(source).spec.groups];
const application = await startApplication();
const routes = join(folder, 'routes.toml');
writeFileSync(routes, ['shop', 'slow'].map((path) => `[[route]]\npath = "/${path}/*"\nguard = "${path === 'shop' ? 'api' : 'none'}"\nupstream = "http://127.0.0.1:${application.port}"\n`).join(''));
const tls = await sessionTls(folder);
const auditDisk = join(folder, 'audit');
mkdirSync(auditDisk);
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${AUDIT_DISK}`, 'tmpfs', auditDisk]);
const ports = { redis: await freePort(), ...tls.ports };
const stack = await startStack({
  edges: 2, sessionServices: 2, store: 'redis', routes, stateDir: folder, ports, accessTokenTtl: 6,
  edgeEnv: {
    EDGE_ACCESS_TOKEN_ENDPOINT: 'true', EDGE_RATE_LIMIT_LOGIN: '0', EDGE_MAX_CONCURRENT_REQUESTS: '16', EDGE_TRUSTED_PROXIES: '127.0.0.1/32', ...tls.edgeEnv,
  },
  sessionEnv: { ...tls.sessionEnv, SESSION_REFRESH_LEASE: String(LEASE_S) },
  env: { session: { AUDIT_LOG: join(auditDisk, 'session.log') } },
}).catch((error) => { cleanUp(); throw error; });
const prometheus = await startPrometheus({ targets: targetsOf(stack), groups: shortened(groups) });
let isOver = false;
const crowd = people(PEOPLE, stack, (page) => `/shop/${page}`, () => isOver);
const seen = new Set();
try {
  const firing = async () => new Set((await prometheus.alerts()).filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname));
  const hasLeft = async () => Number((await prometheus.ask('sum(sessions_ended_total)'))[0]?.value[1]) > 0;
  await until(RAISED_MS, hasLeft, () => 'nobody comes and goes');
  const chosen = faults({ stack, stateDir: folder, redisPort: ports.redis, application, authority: tls.authority, auditDisk }).filter(({ fault }) => fault.includes(only));
  const expected = new Set(only ? chosen.flatMap(({ alerts }) => alerts) : groups.flatMap((group) => group.rules).map(({ alert }) => alert).filter(Boolean));
  for (const { fault, alerts, begin, remedy } of chosen) {
    const gone = async () => { const still = await firing(); return alerts.every((name) => !still.has(name)); };
    await until(OVER_MS, gone, () => `${fault}: the one before is not over`);
    const began = Date.now();
    const raised = new Map();
    await begin();
    const missing = () => alerts.filter((name) => !raised.has(name));
    const all = async () => {
      for (const name of await firing()) if (!raised.has(name)) raised.set(name, ((Date.now() - began) / 1000).toFixed(0));
      return missing().length === 0;
    };
    const failure = await until(RAISED_MS, all, () => `not raised: ${missing()}`).then(() => '', (late) => late.message);
    await remedy();
    const mended = Date.now();
    const lasting = await until(OVER_MS, gone, () => 'does not go').then(() => `over after ${((Date.now() - mended) / 1000).toFixed(0)} s`, (late) => late.message);
    raised.forEach((_, name) => seen.add(name));
    say(`${fault}: ${alerts.map((name) => `${name} ${raised.has(name) ? `after ${raised.get(name)} s` : 'NOT RAISED'}`).join(', ')}; ${failure || lasting}`);
    await pause(1000);
  }
  const never = [...expected].filter((name) => !seen.has(name));
  for (const name of never) say(`${name} was not raised`);
  if (never.length > 0) process.exitCode = 1;
} finally {
  isOver = true;
  await crowd;
  await prometheus.stop();
  await stack.stop();
  application.leave();
  cleanUp();
}
