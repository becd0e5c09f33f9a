// Makes docs/performance.md from bench/recorded.json and bench/goals.mjs alone. `make gen` makes it again, and
// `make lint` fails if it differs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { wrapped } from '../../dev/lib/wrap.mjs';
import { ROOT } from '../../dev/stack.mjs';
import { judged } from './judge.mjs';
import { goalsTable, latencyTable } from './tables.mjs';
import { budget, carries, machine } from './words.mjs';

export const RECORDED = join(ROOT, 'bench/recorded.json');
const NOTHING = '<!-- made by `make gen` -->\n\n# Performance\n\nNo run is recorded. `make bench` makes this page.\n';

/** The missed goals, with the causes of the difference and what would close it. */
function missed(judgements) {
  const all = judgements.filter(({ held }) => !held);
  if (all.length === 0) return 'Every goal is held.';
  return all.map(({ goal, checks }) => {
    const rows = checks.filter(({ held }) => !held).map(({ row, limit }) => `${row.id} ${row.median.toFixed(row.digits)} of ${limit.toFixed(row.digits)} ${row.unit}`);
    const reason = goal.why ? `${goal.why} What would close it: ${goal.closes}` : 'earlier runs held it. This is a regression, or the machine had other load.';
    return `- **${goal.id}** (${rows.join('; ')}): ${reason}`;
  }).join('\n');
}

function page(record) {
  const { run, series } = record;
  const judgements = judged(record);
  const programs = Object.entries(run.programs).map(([name, version]) => `${name} ${version}`);
  return `<!-- made by \`make gen\` from bench/recorded.json -->

# Performance

${carries(record)}

This page shows the cost of a signed-in request, a sign-in, a session and a start, and their latency at stated loads. All figures are from one run of \`make bench\`: do not compare figures of two runs.

${machine(run)}

The main figure is CPU time, user and system, of every process that does the work: edge, session service and Redis, without load generator and
provider. It shows how much load a core carries, and depends less on other load of the machine than elapsed time. A *bound* does the same work with
the same libraries but without our code ([bench/bound](../bench/bound/src/main.rs)): the difference is the cost of our code.

## Goals

${goalsTable(judgements)}

### Missed goals

${missed(judgements)}

## Latency at a stated load

Milliseconds. Requests are due at a fixed rate, on 64 connections. Latency counts from the due time, so a pause of the server shows in every request due meanwhile.

${latencyTable(series.latency)}

## Method

\`make bench\` builds release programs, starts them on loopback and takes 25 minutes at most (${budget(run)}). wrk makes full load
with one thread, oha a stated load, and h2load gRPC calls
([why](decisions/measurement.md#latency-at-a-stated-load)). Compared cases run in alternating rounds after a warm-up; the page shows medians. \`make bench-quick\` takes three minutes and records nothing. [recorded.json](../bench/recorded.json) has every figure of the run.

Programs: ${programs.join(', ')}.
`;
}

/** Writes the page of the record into docs, or that of a trial into its folder. Returns the path. */
export function writePage(trial) {
  const source = trial ? join(trial, 'record.json') : RECORDED;
  const folder = trial ?? join(ROOT, 'docs');
  const file = join(folder, 'performance.md');
  if (!existsSync(source)) {
    writeFileSync(file, NOTHING);
    return file;
  }
  const record = JSON.parse(readFileSync(source, 'utf8'));
  writeFileSync(file, wrapped(page(record)));
  return file;
}
