// `make bench`, first form: CPU time per signed-in session check, summed over every process that serves it.
//
// What it measures: GET /api/auth/me with a real session, edge → session service → store, once on Redis and once on the
// embedded store; release programs, wrk on the same machine. The edge asks the session service for every request: it has no
// cache of its own yet. CPU time is what /proc/PID/stat says before and after, so the load generator's own share is left
// out. Rounds alternate; medians count.
//
//   node bench/run.mjs [--rounds 5] [--seconds 5] [--connections 16]
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { buildWeb, checkTools, installPackages, Problem, run } from '../dev/lib/build.mjs';
import { probe } from '../dev/lib/net.mjs';
import { ROOT, startStack } from '../dev/stack.mjs';
import { Client } from '../dev/tests/product/client.mjs';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '5' }, connections: { type: 'string', default: '16' } } });
const [rounds, seconds, connections] = [values.rounds, values.seconds, values.connections].map(Number);
const TARGET = 'x86_64-unknown-linux-gnu';
const say = (text) => process.stdout.write(`${text}\n`);
const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;

/** User and system time of a process so far, in microseconds. */
function cpuMicros(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6;
}

const residentKiB = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** What wrk writes as 850.00us, 3.02ms or 1.20s. */
function milliseconds(text) {
  const [, number, unit] = /^([\d.]+)(us|ms|s)$/.exec(text);
  return Number((Number(number) * { us: 0.001, ms: 1, s: 1000 }[unit]).toFixed(2));
}

const CASES = [
  { id: 'redis', name: 'edge, session service, Redis', store: 'redis', goal: 50 },
  { id: 'file', name: 'edge, session service, embedded store', store: 'file:', goal: 50 },
];

/** One stack with one signed-in person. */
async function prepare({ store }) {
  const stack = await startStack({ store, profile: `${TARGET}/release`, edgeEnv: { RUST_LOG: 'warn' }, sessionEnv: { RUST_LOG: 'warn' } });
  const person = new Client();
  await person.signIn(stack);
  return { stack, cookie: `session=${person.cookies(stack.edgeUrl).get('session')}` };
}

function load({ stack, cookie }, forSeconds) {
  const pids = stack.names.filter((name) => name !== 'idp').map((name) => [name, stack.pid(name)]);
  const before = pids.map(([, pid]) => cpuMicros(pid));
  const { stdout, status } = spawnSync('wrk', ['-t', '1', '-c', String(connections), '-d', `${forSeconds}s`, '--latency', '-H', `Cookie: ${cookie}`, `${stack.edgeUrl}/api/auth/me`], { encoding: 'utf8' });
  const after = pids.map(([, pid]) => cpuMicros(pid));
  if (status !== 0) throw new Problem(`wrk failed: ${stdout}`);
  if (/Non-2xx/.test(stdout)) throw new Problem(`answers that were no success:\n${stdout}`);
  const requests = Number(/(\d+) requests in/.exec(stdout)[1]);
  return {
    requests,
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)[1]),
    p99: milliseconds(/99%\s+(\S+)/.exec(stdout)[1]),
    micros: after.map((value, at) => (value - before[at]) / requests),
    names: pids.map(([name]) => name),
    rss: pids.map(([, pid]) => residentKiB(pid)),
  };
}

const stacks = [];
try {
  checkTools();
  for (const [command, packet] of [['wrk', 'wrk'], ['redis-server', 'redis-server']]) {
    if (spawnSync('which', [command]).status !== 0) {
      if (process.getuid?.() !== 0) throw new Problem(`make bench needs ${command} (Debian: apt-get install ${packet}).`);
      await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', packet], { quiet: true });
    }
  }
  await installPackages('dev/idp', say);
  await installPackages('web', say);
  await buildWeb(say);
  say('building the services (release; the first time this takes many minutes)');
  await run('cargo', ['build', '--locked', '--release', '--target', TARGET, '-p', 'auth-edge', '-p', 'session-svc'], { env: { ...process.env, RUSTFLAGS: '-C target-feature=+crt-static' } });

  for (const one of CASES) {
    const ready = await prepare(one);
    stacks.push(ready.stack);
    const answer = await fetch(`${ready.stack.edgeUrl}/api/auth/me`, { headers: { cookie: ready.cookie } });
    if (answer.status !== 200) throw new Problem(`the profile answers ${answer.status} before the measurement`);
    Object.assign(one, ready, { bytes: (await answer.text()).length, results: [] });
    load(one, 1); // warm up
  }
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of CASES) {
      const result = load(one, seconds);
      one.results.push(result);
      say(`round ${round} ${one.id}: ${result.micros.reduce((a, b) => a + b).toFixed(1)} µs a request, ${Math.round(result.perSecond)} requests/s, p99 ${result.p99} ms`);
    }
  }

  const total = ({ micros }) => micros.reduce((a, b) => a + b);
  const rows = CASES.map((one) => {
    const totals = one.results.map(total);
    const each = one.results[0].names.map((name, at) => `${name} ${median(one.results.map(({ micros }) => micros[at])).toFixed(1)}`).join(' · ');
    return {
      id: one.id, name: one.name, goal_micros: one.goal, median_micros: median(totals), min_micros: Math.min(...totals), max_micros: Math.max(...totals),
      requests_per_second: median(one.results.map(({ perSecond }) => perSecond)), p99_ms: median(one.results.map(({ p99 }) => p99)), by_process: each, bytes: one.bytes,
      rss_kib: Object.fromEntries(one.results.at(-1).names.map((name, at) => [name, one.results.at(-1).rss[at]])),
    };
  });
  const machine = `${cpus().length} × ${cpus()[0].model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux, node ${process.versions.node}`;
  const report = [
    '# Session check', '', `Machine: ${machine}. Load: \`wrk -t 1 -c ${connections} -d ${seconds}s\`, ${rounds} alternating rounds after a warm-up, ${rows[0].bytes} bytes of profile, all on one machine.`,
    'CPU µs a request, user and system, over edge, session service and Redis; the load generator is not counted.', '',
    '| | Work | Goal | Median (min to max) | By process | Requests/s | p99 at full load |', '|---|---|---|---|---|---|---|',
    ...rows.map((row) => `| ${row.id} | ${row.name} | ≤ ${row.goal_micros} | **${row.median_micros.toFixed(1)}** (${row.min_micros.toFixed(1)} to ${row.max_micros.toFixed(1)}) | ${row.by_process} | ${Math.round(row.requests_per_second)} | ${row.p99_ms} ms |`),
    '', ...rows.map((row) => `${row.id}, resident memory after load: ${Object.entries(row.rss_kib).map(([name, kib]) => `${name} ${(kib / 1024).toFixed(1)} MiB`).join(', ')}.`),
    '', 'Bounds measured elsewhere on two cores: axum answering 300 bytes of JSON 6-7 µs; axum, one tonic call, one Redis GET 35 µs (current-thread) to 60 µs (multi-thread).', '',
  ].join('\n');
  const folder = join(resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target'), 'bench');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'report.md'), report);
  writeFileSync(join(folder, 'report.json'), `${JSON.stringify({ machine, rounds, seconds, connections, rows }, null, 2)}\n`);
  say(`\n${report}\nwritten to ${join(folder, 'report.md')}`);
} catch (error) {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exitCode = 1;
} finally {
  await Promise.all(stacks.map((stack) => stack.stop()));
}
