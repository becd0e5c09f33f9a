// `make reproducible`: builds both programs and the web app twice from the last commit (15 minutes on two cores) and
// compares every byte. Folder, cargo home, time zone, language, file mode mask and jobs differ and must not matter.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { sourceEpoch } from './images/source.mjs';
import { checkTools, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const COMMIT = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim(); // HEAD may move meanwhile
const EPOCH = sourceEpoch();
const WORK = mkdtempSync(join(tmpdir(), 'vestibule-reproducible-'));
const BUILDS = [
  { folder: 'a', umask: '022', env: { TZ: 'UTC', LC_ALL: 'C', CARGO_BUILD_JOBS: '2' } },
  { folder: 'another/and/a/longer/folder', umask: '027', env: { TZ: 'Pacific/Kiritimati', LC_ALL: 'C.UTF-8', CARGO_BUILD_JOBS: '1' } },
];

/** A cargo home with the settings of this machine and its downloaded crates. */
function cargoHome(folder) {
  const own = process.env.CARGO_HOME || join(homedir(), '.cargo');
  mkdirSync(folder, { recursive: true });
  for (const name of ['config.toml', 'config'].filter((file) => existsSync(join(own, file)))) cpSync(join(own, name), join(folder, name));
  if (existsSync(join(own, 'registry'))) symlinkSync(join(own, 'registry'), join(folder, 'registry'));
  return folder;
}

/** Builds programs and pages in a separate environment; returns the digest of each file by name. */
async function build({ folder, umask, env }) {
  const [source, to] = [join(WORK, folder, 'source'), join(WORK, folder, 'out')];
  mkdirSync(source, { recursive: true });
  execFileSync('tar', ['--extract', '--directory', source], { input: execFileSync('git', ['archive', COMMIT], { cwd: ROOT, maxBuffer: 1 << 30 }) });
  const own = { CARGO_TARGET_DIR: join(WORK, folder, 'made'), CARGO_HOME: cargoHome(join(WORK, folder, 'cargo')), SOURCE_DATE_EPOCH: EPOCH };
  const script = `umask ${umask}\ndev/images/programs.sh services "" "${to}"\ncd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build && cp -R dist "${to}/pages"`;
  await run('sh', ['-ec', script], { cwd: source, quiet: true, env: { ...process.env, ...env, ...own } });
  const files = readdirSync(to, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return new Map(files.map((file) => [relative(to, file), createHash('sha256').update(readFileSync(file)).digest('hex')]));
}

try {
  checkTools();
  const [first, second] = [await build(BUILDS[0]), await build(BUILDS[1])];
  const names = [...new Set([...first.keys(), ...second.keys()])].sort();
  const different = names.filter((name) => first.get(name) !== second.get(name));
  for (const name of names) process.stdout.write(`${different.includes(name) ? 'DIFFERS' : 'same   '}  ${first.get(name) ?? second.get(name)}  ${name}\n`);
  process.stdout.write(`\n${different.length} of ${names.length} files of ${COMMIT} differ\n`);
  process.exitCode = different.length > 0 ? 1 : 0;
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(WORK, { recursive: true, force: true });
}
