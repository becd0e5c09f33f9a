// `make chaos`: real processes, simulated people, and faults from a seed; an oracle checks every response.
//
//   node dev/chaos.mjs [--seed 1] [--seeds 20] [--seconds 30] [--kinds kill,cut] [--topology redis|sentinel|file]
//
// A seed determines the faults, their times, and the people's intentions. The interleavings of the processes differ
// between runs. Histories stay in target/chaos/SEED; `node dev/chaos/check.mjs FILE` judges one again.
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { runSeed } from './chaos/run.mjs';
import { ROOT } from './stack.mjs';

export const PLACE = join(resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target'), 'chaos');

const COLUMNS = ['faults', 'requests', 'refused', 'sessions', 'endings', 'refreshes', 'recoveryMs', 'stalledMs'];
const say = (line) => process.stdout.write(`${line}\n`);

/** The table of a run: the events and the violations of each seed. */
function tableOf(results) {
  const head = ['seed', 'store', ...COLUMNS, 'violations'];
  const rows = results.map(({ seed, topology, counts, violations }) => [seed, topology, ...COLUMNS.map((name) => counts[name]), violations.length]);
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: {
    seed: { type: 'string', default: '1' }, seeds: { type: 'string', default: '1' }, seconds: { type: 'string', default: '30' }, kinds: { type: 'string' }, topology: { type: 'string' },
  } });
  const [first, count] = [Number(values.seed), Number(values.seeds)];
  const results = [];
  for (let seed = first; seed < first + count; seed += 1) {
    say(`seed ${seed}`);
    const folder = join(PLACE, String(seed));
    try {
      const result = await runSeed({ seed, seconds: Number(values.seconds), folder, kinds: values.kinds?.split(','), topology: values.topology, say: (line) => say(`  ${line}`) });
      result.violations.forEach(({ rule, text }) => say(`  violation of ${rule}: ${text}`));
      results.push(result);
    } catch (error) {
      say(`  did not finish: ${error.message}`);
    }
  }
  say(`\n${tableOf(results)}`);
  const wrong = results.reduce((sum, { violations }) => sum + violations.length, 0);
  const broken = count - results.length;
  say(`\n${results.length} seeds, ${wrong} violations${broken > 0 ? `, ${broken} did not finish` : ''}`);
  process.exitCode = wrong + broken === 0 ? 0 : 1;
}
