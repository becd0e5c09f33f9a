// `make chaos-defences`: takes out a defence at a time and wants a rule of chaos to find it.
//
//   node dev/chaos/defences/run.mjs [--only id,id]
//   node dev/chaos/defences/run.mjs --check     only whether the table fits the sources; builds nothing
//
// The programs are built once from a copy of the tree with a switch in every row, as `make defences` does; what is shipped has none. Each
// defence is looked for under faults that excuse nothing of it, with one seed after another. The last line is "N defences, N found, N missed".
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { mistakesOf } from './mistakes.mjs';
import { DEFENCES } from './table.mjs';
import { runSeed } from '../run.mjs';
import { makeTree, PLACE, SWITCH } from '../../defences/lib/tree.mjs';
import { BUILD } from '../../defences/lib/tests.mjs';
import { Problem } from '../../lib/build.mjs';

const SEEDS = 6; // a race that a seed does not meet, another one does
const SECONDS = 30;
const say = (text) => process.stdout.write(`${text}\n`);

function build() {
  say('building both programs with switches');
  const { status } = spawnSync('cargo', ['build', '--quiet', '--workspace', '--locked', '--bin', 'auth-edge', '--bin', 'session-svc'], {
    cwd: makeTree(DEFENCES), env: { ...process.env, CARGO_TARGET_DIR: BUILD }, stdio: 'inherit',
  });
  if (status !== 0) throw new Problem('the tree with its switches does not build');
}

/** The first violation of the rules that have to find it, with the seed it came up in. */
async function look({ id, rules, focus }) {
  process.env[SWITCH] = id;
  try {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { violations } = await runSeed({ seed, seconds: SECONDS, folder: join(PLACE, 'chaos', id), ...focus });
      const found = violations.find(({ rule }) => rules.includes(rule));
      if (found) return { seed, ...found };
    }
    return undefined;
  } finally {
    delete process.env[SWITCH];
  }
}

try {
  const { values } = parseArgs({ options: { only: { type: 'string' }, check: { type: 'boolean' } } });
  const chosen = DEFENCES.filter(({ id }) => !values.only || values.only.split(',').includes(id));
  const mistakes = mistakesOf(DEFENCES);
  if (mistakes.length > 0) throw new Problem(`the defences do not fit the sources:\n  ${mistakes.join('\n  ')}`);
  if (values.check) {
    say(`${DEFENCES.length} defences, each at its place`);
    process.exit(0);
  }
  build();
  process.env.CARGO_TARGET_DIR = BUILD; // where the stack takes its programs from
  let missed = 0;
  for (const defence of chosen) {
    const found = await look(defence);
    if (!found) missed += 1;
    say(found ? `found   ${defence.id}: ${found.rule}, seed ${found.seed}: ${found.text}` : `MISSED  ${defence.id}: ${defence.rules.join(', ')} found nothing in ${SEEDS} seeds`);
  }
  say(`\n${chosen.length} defences, ${chosen.length - missed} found, ${missed} missed`);
  if (missed > 0 || chosen.length === 0) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`${error instanceof Problem ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
