// `make lint`: formatting, clippy, documentation, arrows between modules, dependencies, proto and web lint, generated files.
// Runs all of it and names what failed.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { checkTools, installPackages } from './lib/build.mjs';
import { cargoDeny, cargoTool } from './lib/tools.mjs';
import { ROOT } from './stack.mjs';

const say = (text) => process.stdout.write(`\n== ${text}\n`);
const web = join(ROOT, 'web');
const ADVISORIES = join(ROOT, '.cache/advisory-db'); // deny.toml names it too
const FETCH_LIMIT_MS = 60_000; // a few megabytes; where nothing answers, lint goes on

/** Whether a command succeeds; the terminal shows its output. */
const passes = (command, args, { cwd = ROOT, env = process.env, timeout } = {}) => spawnSync(command, args, { cwd, env, timeout, stdio: 'inherit' }).status === 0;

/**
 * Links in comments that lead nowhere, in private items too: none of the crates is published, and who reads this documentation has the
 * source. Links to private items are therefore good ones.
 */
function rustdoc() {
  const env = { ...process.env, RUSTDOCFLAGS: '-D warnings -A rustdoc::private_intra_doc_links' };
  return passes('cargo', ['doc', '--workspace', '--no-deps', '--lib', '--document-private-items', '--locked', '--quiet'], { env });
}

/** Says that nothing is known, which is not the same as nothing being wrong: a release asks for verdicts (ADVISORIES=required). */
function unjudged(what) {
  process.stdout.write(`NOT JUDGED: ${what}.\n`);
  return process.env.ADVISORIES !== 'required';
}

/** cargo-deny. Advisories are a repository of its own: where it cannot be fetched, an earlier copy counts, and without one lint says so. */
async function dependencies() {
  const program = await cargoDeny(say);
  const deny = (...args) => passes(program, ['--locked', ...args]);
  const passed = deny('check', 'bans', 'licenses', 'sources');
  if (!passes(program, ['fetch', 'db'], { timeout: FETCH_LIMIT_MS })) process.stdout.write('The advisories cannot be fetched.\n');
  const copy = existsSync(ADVISORIES) && readdirSync(ADVISORIES).some((name) => existsSync(join(ADVISORIES, name, 'crates')));
  if (!copy) return unjudged('advisories of crates') && passed;
  return deny('--offline', 'check', 'advisories') && passed;
}

/** Advisories about the packages of every lock file, by the audit service of the registry. A registry that does not answer gives no verdict. */
function npmAdvisories() {
  const lockFiles = execFileSync('git', ['ls-files', '--', '*package-lock.json'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const counts = lockFiles.map((lock) => {
    const args = ['audit', '--json', '--package-lock-only', '--fetch-retries=0', '--fetch-timeout=20000'];
    const { stdout } = spawnSync('npm', args, { cwd: join(ROOT, dirname(lock)), encoding: 'utf8', timeout: FETCH_LIMIT_MS, maxBuffer: 1 << 26 });
    try {
      const { vulnerabilities, metadata } = JSON.parse(stdout);
      process.stdout.write(`${lock}: ${metadata.vulnerabilities.total} advisories ${Object.keys(vulnerabilities).join(', ')}\n`);
      return metadata.vulnerabilities.total;
    } catch {
      return undefined;
    }
  });
  const unknown = lockFiles.filter((_, at) => counts[at] === undefined);
  const passed = unknown.length === 0 || unjudged(`npm advisories of ${unknown.join(', ')}`);
  return !counts.some((count) => count > 0) && passed;
}

const unusedDependencies = async () => passes(await cargoTool('cargo-machete', say), []);

const CHECKS = [
  ['Rust format', () => passes('cargo', ['fmt', '--all', '--check'])],
  ['clippy', () => passes('cargo', ['clippy', '--workspace', '--all-targets', '--quiet', '--', '-D', 'warnings'])],
  ['rustdoc', rustdoc],
  ['rooms: every arrow is in dev/rooms.txt', () => passes(process.execPath, ['dev/structure.mjs', '--check'])],
  ['dependencies: advisories, bans, licences, sources', dependencies],
  ['dependencies: advisories of npm', npmAdvisories],
  ['dependencies that nothing uses', unusedDependencies],
  ['conformance: every requirement has a test or a reason', () => passes(process.execPath, ['dev/conformance.mjs', '--check'])],
  ['web: lint and types', () => passes('npm', ['run', '--silent', 'lint'], { cwd: web })],
  ['proto: buf lint', () => passes('npm', ['run', '--silent', 'lint:proto'], { cwd: web })],
  ['proto: nothing that breaks callers', () => passes('npm', ['run', '--silent', 'breaking:proto'], { cwd: web })],
  ['generated files', () => passes(process.execPath, ['dev/gen.mjs', '--check'])],
];

checkTools();
await installPackages('web', say);
const failed = [];
for (const [name, check] of CHECKS) {
  say(name);
  if (!(await check())) failed.push(name);
}
process.stdout.write(failed.length > 0 ? `\nlint failed: ${failed.join(', ')}\n` : '\nlint: all is well\n');
process.exitCode = failed.length > 0 ? 1 : 0;
