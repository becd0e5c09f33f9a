// `make flood`: runs every attack on the edge at once, within the memory limit of the shipped pod, while other users
// sign in and read pages. Ends with a table of the effect on them.
//
//   node dev/flood.mjs [--seconds 60] [--only calls,trickles,bombs,still,idle,status] [--profile debug|release]
import http from 'node:http';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parseArgs } from 'node:util';

import { Child } from './lib/child.mjs';
import { shippedLimit } from './lib/cgroup.mjs';
import { freePort, pause, probe } from './lib/net.mjs';
import { ROOT, startStack } from './stack.mjs';
import { ATTACKS } from './tests/product/attackers.mjs';
import { Client } from './tests/product/client.mjs';

const DEPLOYMENT = join(ROOT, 'k8s/base/edge/deployment.yaml');
const SETTINGS = join(ROOT, 'k8s/base/edge/settings.env');
const VISITORS = 6;
const THINKING_MS = 50; // between two pages of one visitor
const BEGIN_MS = 1_500; // attackers start before the measurement
const LOOK_MS = 50; // between two reads of the memory in use
const LARGEST_MS = 1_000; // limit for 99 of 100 answers
const LOG_BYTES_A_SECOND = 2 * 1024 * 1024; // 1,000 records and 1,000 warnings of 1 KiB: crates/chassis/src/logs/rate.rs

const PIECE = Buffer.alloc(1024 * 1024, 'a');
const PIECES = 64;

/** An endless answer, as fast as the client reads. */
function large(request, response) {
  request.resume();
  const pieces = function* all() { for (let at = 0; at < PIECES; at += 1) yield PIECE; };
  return Readable.from(pieces()).on('error', () => {}).pipe(response.on('error', () => {}));
}

/** An application behind the edge. Below /hang/ it neither reads nor answers; elsewhere it reads whole requests. */
export async function application() {
  const server = http.createServer((request, response) => {
    if (request.url.startsWith('/hang/')) return undefined;
    if (request.url === '/slow/large') return large(request, response);
    request.resume().on('end', () => response.end('done')).on('error', () => {});
    return undefined;
  });
  server.requestTimeout = 0;
  const port = await freePort();
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${port}`, stop: () => { server.closeAllConnections(); server.close(); } };
}

export function routes(folder, upstream) {
  const files = join(folder, 'files');
  mkdirSync(files);
  writeFileSync(join(files, 'index.html'), '<!doctype html><title>a page</title>');
  writeFileSync(join(files, 'small.txt'), 'x'.repeat(10_000));
  const table = [['/slow/*', upstream], ['/hang/*', upstream], ['/*', `dir:${files}`]];
  const file = join(folder, 'routes.toml');
  writeFileSync(file, table.map(([path, to]) => `[[route]]\npath = "${path}"\nguard = "none"\nupstream = "${to}"\n`).join('\n'));
  return file;
}

/** One user until `until`: signs in, reads pages and the profile, signs in again. */
async function visit(stack, account, until, noticed) {
  const timed = async (what, does) => {
    const begun = performance.now();
    try {
      await does();
      noticed.took.push(performance.now() - begun);
    } catch (error) {
      noticed.failed.push(`${what}: ${error.message}`);
    }
  };
  while (Date.now() < until) {
    const client = new Client();
    let back;
    await timed('sign-in begins', async () => {
      const answer = await client.navigate(`${stack.edgeUrl}/api/auth/login`);
      if (answer.status !== 302) throw new Error(`${answer.status}`);
    });
    try {
      back = await client.authorize(stack, { account });
    } catch (error) {
      noticed.failed.push(`sign-in: ${error.message}`);
      continue;
    }
    await timed('sign-in ends', async () => {
      const answer = await client.navigate(back);
      if (answer.status !== 302) throw new Error(`${answer.status}`);
    });
    for (let page = 0; page < 8 && Date.now() < until; page += 1) {
      await timed('a page', async () => {
        const answer = await client.navigate(`${stack.edgeUrl}/`);
        if (answer.status !== 200) throw new Error(`${answer.status}`);
      });
      await timed('who am I', async () => {
        const answer = await client.me(stack);
        if (answer.status !== 200) throw new Error(`${answer.status}`);
      });
      await pause(THINKING_MS);
    }
    noticed.signIns += 1;
  }
}

/** The sum of a metric's series. */
const total = (text, name) => [...text.matchAll(new RegExp(`^${name}(?:{.*})? (\\S+)$`, 'gm'))].reduce((sum, [, value]) => sum + Number(value), 0);

/** The requests that an edge has answered, the bytes of log it has written, and the records it has left out. */
async function readLog(stack) {
  const { body } = await probe(`${stack.adminUrls.edge}/metrics`);
  return {
    requests: total(body, 'http_server_request_duration_seconds_count'),
    leftOut: total(body, 'log_records_left_out_total'),
    bytes: statSync(join(stack.stateDir, 'logs', 'edge.log')).size,
  };
}

/** The limits of the shipped pod. */
const shippedLimits = () => Object.fromEntries([...readFileSync(SETTINGS, 'utf8').matchAll(/^(EDGE_MAX_\w+|EDGE_\w+_SHARE)=(.*)$/gm)].map(([, name, value]) => [name, value]));

/** CPU time of a process in seconds. */
export function processorSeconds(pid) {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ').slice(11, 13);
  return (Number(user) + Number(system)) / 100;
}

export const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Infinity;

/** Runs the attacks, and returns their effect on other users and the edge's use of resources. */
export async function flood({ seconds = 60, only = Object.keys(ATTACKS), profile = 'debug', limit = shippedLimit(DEPLOYMENT) } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-flood-'));
  const upstream = await application();
  let [stack, group, attackers] = [];
  try {
    stack = await startStack({ profile, routes: routes(folder, upstream.url), edgeEnv: { ...shippedLimits(), EDGE_RATE_LIMIT_LOGIN: '0' }, limits: { edge: limit }, stateDir: join(folder, 'stack') });
    group = stack.group('edge');
    const port = new URL(stack.edgeUrl).port;
    attackers = new Child('attackers', process.execPath, [join(ROOT, 'dev/tests/product/attackers.mjs'), port, String(seconds + 10), ...only]);
    await pause(BEGIN_MS);
    const begun = await readLog(stack);
    let peak = 0;
    const watching = setInterval(() => { peak = Math.max(peak, group.used()); }, LOOK_MS);
    const noticed = { took: [], failed: [], signIns: 0 };
    const until = Date.now() + seconds * 1_000;
    await Promise.all(Array.from({ length: VISITORS }, (_, at) => visit(stack, stack.accounts[at % stack.accounts.length], until, noticed)));
    clearInterval(watching);
    const took = noticed.took.sort((one, other) => one - other);
    const spent = { edge: processorSeconds(stack.pid('edge')), attackers: processorSeconds(attackers.pid) };
    const ready = await probe(`${stack.adminUrls.edge}/readyz`);
    const ended = await readLog(stack);
    const log = Object.fromEntries(Object.keys(begun).map((what) => [what, ended[what] - begun[what]]));
    return {
      answered: took.length, failed: noticed.failed, signIns: noticed.signIns, median: quantile(took, 0.5), p99: quantile(took, 0.99),
      peak, limit, spent, seconds, log, lives: ready.status !== 0, ready: ready.status, attackersLived: !attackers.ended,
    };
  } finally {
    await attackers?.stop('SIGKILL');
    await stack?.stop();
    upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The faults of a result. */
export function complaints({ answered, failed, signIns, peak, limit, lives, attackersLived, seconds, log }) {
  const mib = (bytes) => `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return [
    !lives && 'the edge is not there any more',
    !attackersLived && 'the attackers gave up',
    peak >= limit && `it took ${mib(peak)} of ${mib(limit)}`,
    log.bytes > LOG_BYTES_A_SECOND * seconds && `it wrote ${mib(log.bytes / seconds)} of log a second`,
    answered === 0 && 'no request was answered',
    signIns === 0 && 'no user signed in',
    failed.length > 0 && `${failed.length} failed, the first: ${failed.slice(0, 3).join(' | ')}`,
  ].filter(Boolean);
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, only: { type: 'string' }, profile: { type: 'string' } } });
  const result = await flood({ seconds: Number(values.seconds), ...(values.only && { only: values.only.split(',') }), ...(values.profile && { profile: values.profile }) });
  const rows = {
    'requests of others answered': result.answered, 'of others failed': result.failed.length, 'sign-ins of others': result.signIns,
    'median': `${result.median.toFixed(1)} ms`, 'p99': `${result.p99.toFixed(1)} ms`,
    'memory at most': `${(result.peak / 1024 ** 2).toFixed(1)} of ${result.limit / 1024 ** 2} MiB`, '/readyz': result.ready,
    'requests of the flood and others': result.log.requests, 'bytes of log a request': Math.round(result.log.bytes / result.log.requests),
    'bytes of log a second': Math.round(result.log.bytes / result.seconds), 'log records left out': result.log.leftOut,
    'processor time of the edge': `${result.spent.edge.toFixed(1)} s`, 'of the attackers': `${result.spent.attackers.toFixed(1)} s`,
  };
  for (const [what, value] of Object.entries(rows)) process.stdout.write(`${what.padEnd(33)} ${value}\n`);
  // Times depend on the machine: only this command checks them, not the tests.
  const wrong = [...complaints(result), ...(result.p99 >= LARGEST_MS ? [`p99 is ${Math.round(result.p99)} ms`] : [])];
  for (const complaint of wrong) process.stdout.write(`wrong: ${complaint}\n`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
