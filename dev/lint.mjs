// `make lint`: formatting, clippy, arrows between modules, tables of defences, proto and web lint, generated files. Runs all of it and names what failed.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { checkTools, installPackages } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const say = (text) => process.stdout.write(`\n== ${text}\n`);
const web = join(ROOT, 'web');

const CHECKS = [
  ['Rust format', 'cargo', ['fmt', '--all', '--check']],
  ['clippy', 'cargo', ['clippy', '--workspace', '--all-targets', '--quiet', '--', '-D', 'warnings']],
  ['rooms: who may know whom', process.execPath, ['dev/structure.mjs', '--check']],
  ['defences: the tables fit the sources', process.execPath, ['dev/defences.mjs', '--check']],
  ['web: lint and types', 'npm', ['run', '--silent', 'lint'], web],
  ['proto: buf lint', 'npm', ['run', '--silent', 'lint:proto'], web],
  ['generated files', process.execPath, ['dev/gen.mjs', '--check']],
];

checkTools();
await installPackages('web', say);
const failed = [];
for (const [name, command, args, cwd = ROOT] of CHECKS) {
  say(name);
  if (spawnSync(command, args, { cwd, stdio: 'inherit' }).status !== 0) failed.push(name);
}
process.stdout.write(failed.length > 0 ? `\nlint failed: ${failed.join(', ')}\n` : '\nlint: all is well\n');
process.exitCode = failed.length > 0 ? 1 : 0;
