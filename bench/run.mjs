// `make bench`: every line of the performance goals, measured with release programs on this machine.
//
//   node bench/run.mjs                              everything
//   node bench/run.mjs --only session_check,ending  some lines
//   node bench/run.mjs --only peers                  us beside others that keep sessions
//   node bench/run.mjs --rounds 5 --seconds 5 --sessions 1000000
//
// The figure steered by is CPU time a request, user and system, over every process that serves it; the load generator is not
// counted. What is compared runs in alternating rounds; medians count, with the smallest and largest beside them. The report is
// target/bench/report.md; bench/recorded.json is the last one that was recorded, and --record replaces it.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { ROOT } from '../dev/stack.mjs';
import { prepare } from './lib/services.mjs';
import { draining } from './lines/draining.mjs';
import { ending } from './lines/ending.mjs';
import { getSession } from './lines/get_session.mjs';
import { growth } from './lines/growth.mjs';
import { peers } from './lines/peers.mjs';
import { proxying } from './lines/proxying.mjs';
import { refresh } from './lines/refresh.mjs';
import { sessionCheck } from './lines/session_check.mjs';
import { signIn } from './lines/sign_in.mjs';
import { starting } from './lines/starting.mjs';

const LINES = { session_check: sessionCheck, proxying, sign_in: signIn, get_session: getSession, refresh, ending, draining, growth, starting, peers };
const RECORDED = join(ROOT, 'bench/recorded.json');

const { values } = parseArgs({
  options: {
    only: { type: 'string' }, record: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '4' }, sessions: { type: 'string', default: '1000000' },
  },
});
const [rounds, seconds, sessions] = [values.rounds, values.seconds, values.sessions].map(Number);
const chosen = values.only?.split(',') ?? Object.keys(LINES);
const say = (text) => process.stdout.write(`${text}\n`);

/** Runs one line and stops what it started, whatever happens. */
async function measure(name) {
  const started = [];
  const cleanup = (thing) => {
    started.push(thing);
    return thing;
  };
  say(`\n== ${name}`);
  try {
    return await LINES[name]({ rounds, seconds, sessions, say, cleanup });
  } finally {
    for (const thing of started.reverse()) await thing.stop();
  }
}

function report(rows) {
  const machine = `${cpus().length} × ${cpus()[0].model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux, node ${process.versions.node}`;
  const recorded = existsSync(RECORDED) ? JSON.parse(readFileSync(RECORDED, 'utf8')) : {};
  const against = ({ id, median }) => (recorded[id] && median ? `${(median / recorded[id]).toFixed(2)} ×` : '');
  const table = rows.map((row) => `| ${row.id} | ${row.work} | ${row.unit} | ${row.goal} | ${row.text} | ${against(row)} | ${row.detail} |`);
  const text = [
    '# Benchmark', '',
    `${machine}. Load by wrk (one thread, 16 connections, ${seconds} s) and h2load, ${rounds} alternating rounds after a warm-up, everything on one machine.`,
    'CPU time is user and system over every process that serves, without the load generator. Services log warnings only, unless a line says otherwise.', '',
    '| | Work | Unit | Goal | Median (min to max) | Last record | |', '|---|---|---|---|---|---|---|', ...table, '',
  ].join('\n');
  const folder = join(resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target'), 'bench');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'report.md'), text);
  const figures = Object.fromEntries(rows.filter(({ median }) => median !== undefined).map(({ id, median }) => [id, Number(median.toPrecision(4))]));
  writeFileSync(join(folder, 'report.json'), `${JSON.stringify({ machine, rounds, seconds, rows }, null, 2)}\n`);
  if (values.record) writeFileSync(RECORDED, `${JSON.stringify({ ...recorded, ...figures }, null, 2)}\n`);
  say(`\n${text}\nwritten to ${join(folder, 'report.md')}`);
}

try {
  const unknown = chosen.filter((name) => !LINES[name]);
  if (unknown.length > 0) throw new Error(`no line is called ${unknown.join(', ')}; there are ${Object.keys(LINES).join(', ')}`);
  await prepare(say, chosen);
  const rows = [];
  for (const name of chosen) rows.push(...await measure(name));
  report(rows);
} catch (error) {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exitCode = 1;
}
