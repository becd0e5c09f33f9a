// Builds the examples of docs/verify.md and says how to start them.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { binary, ROOT } from '../stack.mjs';
import { cargoBuild, installPackages, run } from './build.mjs';
import { fromPypi } from './pypi.mjs';

const SOURCES = join(ROOT, 'examples/verify');
const PYTHON = join(ROOT, '.cache/verify-python');
const GO_PROGRAM = join(ROOT, '.cache/verify-go/verify');
const GO_PACKAGES = '/usr/share/gocode'; // where Debian keeps the sources of Go packages
const NPM_FOLDERS = ['express', 'next'].map((name) => `examples/verify/${name}`);

const python = (name) => ({ command: join(PYTHON, 'bin/python'), args: ['app.py'], cwd: join(SOURCES, name), env: { PYTHONDONTWRITEBYTECODE: '1' } });

/**
 * How to start each example. Its settings are PORT, VESTIBULE_ISSUER, AUDIENCE and KEYS_URL.
 * `fetchesForEachKey`: its library fetches the keys for each unknown key ID.
 */
export const VERIFIERS = {
  express: { command: process.execPath, args: ['app.js'], cwd: join(SOURCES, 'express') },
  next: { command: process.execPath, args: ['node_modules/next/dist/bin/next', 'start', '-H', '127.0.0.1'], cwd: join(SOURCES, 'next'), env: { NEXT_TELEMETRY_DISABLED: '1' } },
  fastapi: python('fastapi'),
  django: python('django'),
  flask: python('flask'),
  go: { command: GO_PROGRAM, args: [], fetchesForEachKey: true },
  rack: { command: 'ruby', args: ['app.rb'], cwd: join(SOURCES, 'rack') },
  axum: { command: binary('verify-axum'), args: [] },
};

/** Whether the Go library of the example is installed. */
export const goOidc = () => existsSync(join(GO_PACKAGES, 'src/github.com/coreos/go-oidc'));

/** Installs what the examples need from npm and PyPI. */
export async function installVerifiers(say) {
  for (const folder of NPM_FOLDERS) await installPackages(folder, say);
  await fromPypi(PYTHON, 'verify.txt', 'the Python packages of the examples that verify assertions', say);
}

/** Builds the examples. */
export async function buildVerifiers(say) {
  await installVerifiers(say);
  say('building the examples that verify assertions');
  await cargoBuild(['--bin', 'verify-axum']);
  const env = { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOPATH: GO_PACKAGES };
  const cwd = join(SOURCES, 'go');
  await run('go', ['vet', '.'], { cwd, env, quiet: true });
  await run('go', ['build', '-o', GO_PROGRAM, '.'], { cwd, env, quiet: true });
  const { env: quiet, cwd: next } = VERIFIERS.next;
  await run('npm', ['run', '--silent', 'build'], { cwd: next, env: { ...process.env, ...quiet }, quiet: true });
}
