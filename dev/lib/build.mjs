// Builds what the stack runs, if it changed: the two services, the provider's packages, the web app.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { binary, ROOT } from '../stack.mjs';

const MIN_NODE = [20, 19];

export class Problem extends Error {}

/** Ends a script at its first error, with the message alone. */
export const endOnErrors = () => process.on('uncaughtException', (error) => { process.stderr.write(`${error.message}\n`); process.exit(1); });

function has(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

/** Runs a command in the foreground with its output on the terminal. */
export function run(command, args, { cwd = ROOT, env = process.env, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit' });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (chunk) => { output += chunk; });
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(output) : reject(new Problem(`${command} ${args.join(' ')} failed (code ${code})\n${output}`))));
  });
}

/** Lists all files below `path` with size and modification time: cheap, and different after any change. */
function fingerprint(paths) {
  const hash = createHash('sha256');
  const add = (path) => {
    if (!existsSync(path)) return;
    const stat = statSync(path);
    if (stat.isDirectory()) readdirSync(path).sort().forEach((name) => add(join(path, name)));
    else hash.update(`${path} ${stat.size} ${stat.mtimeMs}\n`);
  };
  paths.forEach(add);
  return hash.digest('hex');
}

function upToDate(stamp, mark) {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === mark;
}

function writeStamp(stamp, mark) {
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, mark);
}

/** Reports all programs that are missing on this machine, in one error. */
export function checkTools() {
  const missing = [];
  if (!has('cargo')) missing.push('cargo (https://rustup.rs)');
  if (!has('npm')) missing.push('npm');
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1])) missing.push(`node ${MIN_NODE.join('.')} or newer (this is ${process.versions.node})`);
  if (missing.length > 0) throw new Problem(`This needs ${missing.join(' and ')}.`);
}

/** Installs the packages of `folder` if its lock file changed since the last time. */
export async function installPackages(folder, say) {
  const lock = createHash('sha256').update(readFileSync(join(ROOT, folder, 'package-lock.json'))).digest('hex');
  const stamp = join(ROOT, folder, 'node_modules/.vestibule-lock');
  if (upToDate(stamp, lock)) return;
  say(`installing the packages of ${folder} (about half a minute)`);
  await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: join(ROOT, folder) });
  writeStamp(stamp, lock);
}

/**
 * Runs `cargo build` for programs or examples of the workspace. With an example, cargo selects dependency features
 * as `cargo test --workspace` does; a different selection would compile all dependencies again.
 */
export const cargoBuild = (targets, { quiet = true } = {}) => run('cargo', ['build', ...(quiet ? ['--quiet'] : []), '--workspace', ...targets]);

/** Builds the three programs and the example of the session API in the development profile. */
export async function buildServices(say) {
  const cold = !['auth-edge', 'session-svc', 'vestibule'].every((name) => existsSync(binary(name)));
  say(cold ? 'building the services (the first time this takes some minutes)' : 'building the services');
  await cargoBuild(['--bin', 'auth-edge', '--bin', 'session-svc', '--bin', 'vestibule', '--example', 'session_api'], { quiet: !cold });
}

/** Builds the web app for both places (alone, and in the program `vestibule`) if one of its sources changed. */
export async function buildWeb(say) {
  const web = join(ROOT, 'web');
  const sources = ['src', 'public', 'scripts', 'index.html', 'package.json', 'package-lock.json', 'vite.config.ts', 'tsconfig.json'].map((name) => join(web, name));
  const mark = fingerprint(sources);
  const stamp = join(web, 'node_modules/.vestibule-dist');
  if (upToDate(stamp, mark) && ['dist', 'dist-one'].every((build) => existsSync(join(web, build, 'index.html')))) return;
  say('building the web app');
  for (const script of ['build', 'build:one']) await run('npm', ['run', '--silent', script], { cwd: web, quiet: true });
  writeStamp(stamp, mark);
}
