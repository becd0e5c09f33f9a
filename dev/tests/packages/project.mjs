// Empty projects that install the built packages from their files.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

import { PACKAGES } from '../../packages.mjs';
import { ROOT } from '../../stack.mjs';

export const LICENCE = readFileSync(join(ROOT, 'LICENSE'), 'utf8');
export const VERSION = /^version = "(.+)"$/m.exec(readFileSync(join(ROOT, 'Cargo.toml'), 'utf8'))[1];

const LIMIT_MS = 300_000; // an installation or a compilation next to other suites

/** Runs a program to its end and returns its output; a failure shows it. */
export function run(command, args, options = {}) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS, ...options });
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout}${error.stderr}`, { cause: error });
  }
}

export const node = (cwd, file, ...args) => run(process.execPath, [file, ...args], { cwd }).trim();

/** The path of the only built package whose name ends so. */
export function packageFile(ending) {
  const found = readdirSync(PACKAGES).filter((name) => name.endsWith(ending));
  if (found.length !== 1) throw new Error(`target/packages has ${found.length} files *${ending}: run make packages`);
  return join(PACKAGES, found[0]);
}

/** What a package file holds: sorted names without its first folder, and its size in bytes. */
export function contents(file) {
  const names = run('tar', ['tzf', file]).trim().split('\n').map((name) => name.slice(name.indexOf('/') + 1));
  return { names: names.sort(), bytes: statSync(file).size };
}

/** A new folder, which goes with the test file. */
export function folder() {
  const made = mkdtempSync(join(tmpdir(), 'vestibule-package-'));
  after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A project with the installed packages of another folder, or with none, into which npm installs a file offline. */
export function npmProject(file, from) {
  const made = folder();
  if (from) for (const name of ['package.json', 'package-lock.json', 'node_modules']) cpSync(join(ROOT, from, name), join(made, name), { recursive: true, verbatimSymlinks: true });
  else writeFileSync(join(made, 'package.json'), '{ "type": "module", "private": true }\n');
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--no-save', '--loglevel=error', file], { cwd: made });
  return made;
}

/** The first block of a language in a package's manual. */
export const manualBlock = (manual, language) => readFileSync(manual, 'utf8').split(`\`\`\`${language}\n`)[1].split('```')[0];
