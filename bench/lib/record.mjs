// Facts about a run and its machine, recorded with the figures.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpus, hostname, loadavg, release, totalmem } from 'node:os';
import { readFileSync } from 'node:fs';

import { VERSIONS as CARGO_TOOLS } from '../../dev/lib/tools.mjs';
import { ROOT } from '../../dev/stack.mjs';

/** Increased if the page can no longer use earlier records. */
export const FORMAT = 1;

/** The version number in the output of a program. */
const version = (command, args = ['--version']) => {
  const { stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return /\d+\.\d[\w.]*/.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[0];
};

const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

/** The name of the operating system. */
const system = () => /^PRETTY_NAME="(.*)"/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform;

/** Machine and commit of a run; read before it begins, so that the load average excludes the run. */
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

/** Rounds figures to four digits: more are noise and make records longer. */
export const rounded = (key, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);
