// docs/performance.md, from bench/recorded.json and bench/goals.mjs alone: `make gen` makes it again, and
// `make lint` fails where it differs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../../dev/stack.mjs';
import { growthChart, latencyChart } from './charts.mjs';
import { judged } from './judge.mjs';
import { goalsTable, latencyTable } from './tables.mjs';
import { budget, machine } from './words.mjs';

export const RECORDED = join(ROOT, 'bench/recorded.json');
const NOTHING = '<!-- made by `make gen` -->\n\n# Performance\n\nNo run is recorded. `make bench` makes this page.\n';

/** What is missed, of what the difference is made and what would close it. */
function missed(judgements) {
  const all = judgements.filter(({ held }) => !held);
  if (all.length === 0) return 'Every goal is held.';
  return all.map(({ goal, checks }) => {
    const rows = checks.filter(({ held }) => !held).map(({ row, limit }) => `${row.id} ${row.median.toFixed(row.digits)} of ${limit.toFixed(row.digits)} ${row.unit}`);
    const reason = goal.why ? `${goal.why} What would close it: ${goal.closes}` : 'earlier runs held it. A regression, or other load on the machine.';
    return `- **${goal.id}** (${rows.join('; ')}): ${reason}`;
  }).join('\n');
}

function page(record) {
  const { run, series } = record;
  const judgements = judged(record);
  const programs = Object.entries(run.programs).map(([name, version]) => `${name} ${version}`);
  return `<!-- made by \`make gen\` from bench/recorded.json -->

# Performance

What a signed-in request, a sign-in, a session and a start cost, and how long people wait for them at stated loads. All of it is one run of \`make bench\`: figures of two runs are never set beside each other.

${machine(run)}

The figure steered by is CPU time, user and system, over every process that does the work: edge, session service and Redis, without load generator and
provider. It says what a core is worth, and depends less on who else uses the machine than a time on the clock. A *bound* does the same with
the same libraries and nothing of ours in between ([bench/bound](../bench/bound/src/main.rs)): what is above it is ours.

## Goals

${goalsTable(judgements)}

### What is missed

${missed(judgements)}

## How long it takes at a stated load

${latencyChart(record, 'Session known to the edge', 'P1', 'bound')}

${latencyChart(record, 'Asked each time', 'P2', 'chain')}

Requests are due at a fixed rate whatever becomes of those before, and what each took counts from when it was due, on whichever of 64 connections is
free: a server that stands still for a moment is seen in everything that was due meanwhile. Milliseconds; generator and servers share the cores.

${latencyTable(series.latency)}

## As sessions grow

${growthChart(record)}

## How it is measured

\`make bench\` builds release programs, starts them on loopback and takes 25 minutes at most (${budget(run)}). Full load is wrk's, of one
thread; a stated load is oha's; gRPC is h2load's
([why](decisions/measurement.md#latency-at-a-stated-load)). What is compared runs in alternating rounds after a warm-up; medians count. \`make bench-quick\` takes three minutes,
prints the same tables of a part and records nothing, as does \`node bench/run.mjs --only LINE\`. [recorded.json](../bench/recorded.json) has every figure of the run.

Programs: ${programs.join(', ')}.
`;
}

/** Writes the page: that of the record into docs, or that of a trial into a folder. Returns its path. */
export function writePage(trial) {
  const source = trial ? join(trial, 'record.json') : RECORDED;
  const folder = trial ?? join(ROOT, 'docs');
  const file = join(folder, 'performance.md');
  if (!existsSync(source)) {
    writeFileSync(file, NOTHING);
    return file;
  }
  const record = JSON.parse(readFileSync(source, 'utf8'));
  writeFileSync(file, page(record));
  return file;
}
