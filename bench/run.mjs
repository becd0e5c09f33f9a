// `make bench`: measures every performance goal with release programs on this machine, next to bounds.
//
//   node bench/run.mjs                              all lines, in at most 25 minutes after the build; recorded.
//   node bench/run.mjs --quick                      the most sensitive lines, in three minutes.
//   node bench/run.mjs --only session_check,ending  some lines
//   node bench/run.mjs --rounds 1 --seconds 1 --sessions 10000 --no-record
//
// The main figure is CPU time of a request, user and system, over every process that serves it, without the load
// generator. Compared cases run in alternating rounds; rows show the median, the smallest and the largest. Every run
// writes target/bench/report.md. Only a run of all lines writes bench/recorded.json, from which it makes
// docs/performance.md.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { ROOT } from '../dev/stack.mjs';
import { circumstances, FORMAT, rounded } from './lib/record.mjs';
import { prepare } from './lib/services.mjs';
import { ending } from './lines/ending.mjs';
import { getSession } from './lines/get_session.mjs';
import { growth } from './lines/growth.mjs';
import { idle } from './lines/idle.mjs';
import { latency } from './lines/latency.mjs';
import { oneProgram } from './lines/one_program.mjs';
import { proxying } from './lines/proxying.mjs';
import { refresh } from './lines/refresh.mjs';
import { sessionCheck } from './lines/session_check.mjs';
import { signIn } from './lines/sign_in.mjs';
import { starting } from './lines/starting.mjs';
import { web } from './lines/web.mjs';
import { RECORDED, writePage } from './page/page.mjs';
import { report } from './page/report.mjs';

const LINES = { session_check: sessionCheck, latency, proxying, sign_in: signIn, get_session: getSession, refresh, ending, growth, idle, starting, web, one_program: oneProgram };
const QUICK = { only: 'session_check,proxying,sign_in,get_session,starting', rounds: '3', seconds: '1' };

const { values } = parseArgs({
  allowNegative: true,
  options: {
    quick: { type: 'boolean', default: false }, only: { type: 'string' }, record: { type: 'boolean', default: true },
    rounds: { type: 'string' }, seconds: { type: 'string' }, sessions: { type: 'string', default: '1000000' },
  },
});
const options = { rounds: '5', seconds: '3', ...(values.quick && QUICK), ...values };
const [rounds, seconds, sessions] = [options.rounds, options.seconds, options.sessions].map(Number);
const chosen = options.only?.split(',') ?? Object.keys(LINES);
const say = (text) => process.stdout.write(`${text}\n`);

/** Measures one line, once more after a failure: a run of all lines takes long. */
async function measure(name) {
  try {
    return await measuredOnce(name);
  } catch (error) {
    say(`${name} failed, measuring it once more: ${error.stack ?? error}`);
    return measuredOnce(name);
  }
}

/** Runs one line and always stops what it started. */
async function measuredOnce(name) {
  const started = [];
  const cleanup = (thing) => {
    started.push(thing);
    return thing;
  };
  say(`\n== ${name}`);
  const began = performance.now();
  try {
    return { name, ...await LINES[name]({ rounds, seconds, sessions, say, cleanup }), tookSecs: Math.round((performance.now() - began) / 1000) };
  } finally {
    for (const thing of started.reverse()) await thing.stop();
  }
}

/** The record of a run: all lines together. */
function record(run, lines) {
  return {
    format: FORMAT,
    run: { ...run, tookSecs: Object.fromEntries(lines.map(({ name, tookSecs }) => [name, tookSecs])) },
    rows: lines.flatMap(({ rows }) => rows),
    series: Object.assign({}, ...lines.map(({ series }) => series)),
  };
}

try {
  const unknown = chosen.filter((name) => !LINES[name]);
  if (unknown.length > 0) throw new Error(`unknown lines ${unknown.join(', ')}; there are ${Object.keys(LINES).join(', ')}`);
  await prepare(say, chosen);
  const run = circumstances({ rounds, seconds, sessions });
  const lines = [];
  for (const name of chosen) lines.push(await measure(name));
  const text = JSON.stringify(record(run, lines), rounded, 1);
  const folder = join(resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target'), 'bench');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'record.json'), `${text}\n`);
  writeFileSync(join(folder, 'report.md'), report(JSON.parse(text)));
  say(`\n${report(JSON.parse(text))}\nwritten to ${folder}`);
  if (chosen.length === Object.keys(LINES).length) {
    if (values.record) writeFileSync(RECORDED, `${text}\n`);
    say(`written: ${writePage(values.record ? undefined : folder)}`);
  }
} catch (error) {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exitCode = 1;
}
