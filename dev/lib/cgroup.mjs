// A memory limit for one process, as a container has it: a temporary control group, version 1 or 2.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { until } from './net.mjs';

const ROOT = '/sys/fs/cgroup';
const EMPTY_MS = 5_000; // a killed process leaves its group within milliseconds

/** The file names of each version, and the location of the memory controller. */
function layout() {
  const controllers = join(ROOT, 'cgroup.controllers');
  if (existsSync(controllers)) {
    if (!readFileSync(controllers, 'utf8').split(/\s+/).includes('memory')) throw new Error(`${ROOT} has no memory controller`);
    return { base: ROOT, limit: 'memory.max', own: /^anon (\d+)$/m, prepare: () => writeFileSync(join(ROOT, 'cgroup.subtree_control'), '+memory') };
  }
  const base = join(ROOT, 'memory');
  if (!existsSync(join(base, 'memory.limit_in_bytes'))) throw new Error(`neither ${ROOT} nor ${base} is a control group with memory`);
  return { base, limit: 'memory.limit_in_bytes', own: /^total_rss (\d+)$/m, prepare: () => {} };
}

let groups = 0;

/**
 * A group with a memory limit. The kernel kills a process in it that needs more, as in a container.
 * @throws {Error} if no group can be made, so that a test that needs one cannot pass without it
 */
export function limitMemory(bytes) {
  const folder = `vestibule-${process.pid}-${groups += 1}`;
  try {
    const { base, limit, own, prepare } = layout();
    const group = join(base, folder);
    prepare();
    mkdirSync(group);
    try {
      writeFileSync(join(group, limit), String(bytes));
    } catch (error) {
      rmdirSync(group);
      throw error;
    }
    const processes = () => readFileSync(join(group, 'cgroup.procs'), 'utf8').trim();
    return {
      /** The command that starts a program under the limit from its first instruction on. */
      within: (command, args) => ['/bin/sh', ['-c', 'echo $$ > "$0" && exec "$@"', join(group, 'cgroup.procs'), command, ...args]],
      /** The ids of its processes. */
      processes,
      /** The memory in use, in bytes, without files that the kernel caches and can drop. */
      used: () => Number(own.exec(readFileSync(join(group, 'memory.stat'), 'utf8'))[1]),
      /** Removes the group, after its processes have ended. */
      remove: async () => {
        await until(EMPTY_MS, () => processes() === '', () => `processes are left in ${group}: ${processes()}`);
        rmdirSync(group);
      },
    };
  } catch (error) {
    throw new Error(`No memory limit can be set here (${error.message}): run this as root where the control group ${ROOT} can be written`);
  }
}

const UNITS = { Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 };

/** The memory limit in bytes of the first container in a workload's manifest. */
export function shippedLimit(deployment) {
  const [, count, unit] = /limits:\s*\{[^}]*memory:\s*(\d+)(Ki|Mi|Gi)/.exec(readFileSync(deployment, 'utf8')) ?? [];
  if (!count) throw new Error(`${deployment} names no memory limit`);
  return Number(count) * UNITS[unit];
}
