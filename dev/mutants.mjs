// `make mutants`: cargo-mutants changes operators, match arms and functions in the modules of .cargo/mutants.toml.
//
//   node dev/mutants.mjs --shard 0/40                             a sample, half an hour on two cores.
//   node dev/mutants.mjs --file auth-edge/src/values/path.rs      one module.
//   node dev/mutants.mjs --in-diff change.patch                   the lines of a change.
//   node dev/mutants.mjs                                          every module, a night; each must fail a test.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { cargoTool } from './lib/tools.mjs';
import { ROOT } from './stack.mjs';

const PLACE = join(ROOT, 'target/mutants');

/** By package: its folder, and the targets whose tests have to fail; without those that mostly wait (failovers). */
const PACKAGES = {
  'auth-edge': { folder: 'auth-edge', targets: ['--lib', '--test', 'product'] },
  'session-svc': { folder: 'session-svc', targets: ['--lib', '--test', 'service'] },
  oidc: { folder: 'crates/oidc', targets: ['--lib', '--test', 'relying_party'] },
  ssf: { folder: 'crates/ssf', targets: ['--lib'] },
  chassis: { folder: 'crates/chassis', targets: ['--lib'] },
};

const { values } = parseArgs({ options: { file: { type: 'string' }, 'in-diff': { type: 'string' }, shard: { type: 'string' } } });
const narrow = Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
const say = (text) => process.stdout.write(`${text}\n`);

const program = await cargoTool('cargo-mutants', say);
for (const [name, { folder, targets }] of Object.entries(PACKAGES)) {
  if (values.file && !values.file.startsWith(`${folder}/`)) continue;
  const output = join(PLACE, name);
  mkdirSync(output, { recursive: true });
  say(`\nmutants of ${name}, with their outcomes in ${output}`);
  const { status } = spawnSync(program, ['mutants', '--package', name, '--output', output, ...narrow, '--', ...targets], {
    cwd: ROOT, stdio: 'inherit', env: { ...process.env, CARGO_TARGET_DIR: join(PLACE, 'build') },
  });
  if (status !== 0) process.exitCode = 1;
}
