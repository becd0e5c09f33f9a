// What one run says of itself and of the machine it ran on, beside its figures.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpus, hostname, loadavg, release, totalmem } from 'node:os';
import { readFileSync } from 'node:fs';

import { ROOT } from '../../dev/stack.mjs';

/** Raised when a page could not be made of what was recorded before. */
export const FORMAT = 1;

const first = (command, args) => {
  const { stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n')[0];
};

const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

/** Of Debian's release file, what a person calls it. */
const system = () => /^PRETTY_NAME="(.*)"/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform;

/** Where and of what this run is; asked before it begins, so that its own load is not the machine's. */
export const circumstances = (options) => ({
  at: new Date().toISOString(),
  host: hostname(),
  commit: git('rev-parse', 'HEAD'),
  dirty: git('status', '--porcelain') !== '',
  cpu: cpus()[0].model.trim(),
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  kernel: release(),
  system: system(),
  load: loadavg()[0],
  options,
  programs: {
    rustc: first('rustc', ['--version']),
    node: process.versions.node,
    redis: first('redis-server', ['--version']),
    nginx: first('nginx', ['-v']),
    wrk: first('wrk', ['-v']),
    h2load: first('h2load', ['--version']),
  },
});

/** Figures to four digits: more is noise, and makes records longer. */
export const rounded = (key, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);
