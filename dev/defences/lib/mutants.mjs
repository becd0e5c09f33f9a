// cargo-mutants over the modules of .cargo/mutants.toml, package by package: each has tests of its own that are quick enough to be asked
// about every mutant.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { cargoTool } from '../../lib/tools.mjs';
import { ROOT } from '../../stack.mjs';
import { BUILD } from './tests.mjs';
import { PLACE } from './tree.mjs';

/** The targets whose tests have to notice. What only waits (failovers, killed processes) is left out. */
const TARGETS = {
  'auth-edge': ['--lib', '--test', 'product'],
  'session-svc': ['--lib', '--test', 'service', '--test', 'callers', '--test', 'refresh'],
  oidc: ['--lib', '--test', 'relying_party'],
  chassis: ['--lib'],
};

/** Runs it; `file` is one source, `diff` a file with a patch, to look at no more than that. Whether every mutant was caught. */
export async function runMutants({ file, diff }, folders, say) {
  const program = await cargoTool('cargo-mutants', say);
  const narrow = [...(file ? ['--file', file] : []), ...(diff ? ['--in-diff', diff] : [])];
  const env = { ...process.env, CARGO_TARGET_DIR: BUILD };
  let caught = true;
  for (const [name, targets] of Object.entries(TARGETS)) {
    if (file && !file.startsWith(`${folders.get(name)}/`)) continue;
    const output = join(PLACE, 'mutants', name);
    mkdirSync(output, { recursive: true });
    say(`\nmutants of ${name}; what came of each is written to ${output}`);
    const args = ['mutants', '--package', name, '--output', output, ...narrow, '--', ...targets];
    caught = spawnSync(program, args, { cwd: ROOT, env, stdio: 'inherit' }).status === 0 && caught;
  }
  return caught;
}
