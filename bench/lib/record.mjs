// What one run says of itself and of the machine it ran on, beside its figures.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpus, hostname, loadavg, release, totalmem } from 'node:os';
import { readFileSync } from 'node:fs';

import { VERSIONS as CARGO_TOOLS } from '../../dev/lib/tools.mjs';
import { ROOT } from '../../dev/stack.mjs';

/** Raised when a page could not be made of what was recorded before. */
export const FORMAT = 1;

/** The version a program tells, of whatever else it says. */
const version = (command, args = ['--version']) => {
  const { stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return /\d+\.\d[\w.]*/.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[0];
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
    rustc: version('rustc'),
    node: process.versions.node,
    redis: version('redis-server'),
    nginx: version('nginx', ['-v']),
    wrk: version('wrk', ['-v']),
    h2load: version('h2load'),
    oha: CARGO_TOOLS.oha,
  },
});

/** Figures to four digits: more is noise, and makes records longer. */
export const rounded = (key, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);
