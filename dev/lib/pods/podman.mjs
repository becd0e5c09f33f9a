// podman as this runner uses it: what has to be on the machine, and commands that are run and waited for.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Problem } from '../build.mjs';

// runc, and fewer open files and processes than the kernel's most, work in containers and in virtual machines too, where
// podman's own choices may not.
const SETTINGS = `[containers]
default_ulimits=["nofile=16384:16384","nproc=8192:8192"]
[engine]
runtime="runc"
`;

const runs = (command, ...args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;
const netavark = ['/usr/lib/podman/netavark', '/usr/libexec/podman/netavark'];

/** What pods need on this machine: what it is, how to see it, where it comes from. */
const PARTS = [
  { what: 'root (pods get network namespaces, memory limits and packet filters)', there: () => process.getuid?.() === 0 },
  { what: 'podman', there: () => runs('podman', '--version'), debian: 'podman' },
  { what: 'runc', there: () => runs('runc', '--version'), debian: 'runc' },
  { what: 'netavark', there: () => netavark.some((file) => existsSync(file)), debian: 'netavark' },
  { what: 'catatonit', there: () => runs('catatonit', '--version') || existsSync('/usr/libexec/podman/catatonit'), debian: 'catatonit' },
  { what: 'iptables', there: () => runs('iptables', '--version'), debian: 'iptables' },
  { what: 'nft', there: () => runs('nft', '--version'), debian: 'nftables' },
  { what: 'nsenter', there: () => runs('nsenter', '--version'), debian: 'util-linux' },
  { what: 'openssl', there: () => runs('openssl', 'version'), debian: 'openssl' },
  { what: 'kubectl with kustomize (kubernetes.io/docs/tasks/tools)', there: () => runs('kubectl', 'kustomize', '--help') },
];

/** Debian packages that give what is needed. */
export const DEBIAN_PACKAGES = PARTS.flatMap(({ debian }) => debian ?? []);

/** Whether all of those are installed. */
export const partsAreThere = () => PARTS.every(({ debian, there }) => !debian || there());

/** Names what is missing on this machine. */
export const missingParts = () => PARTS.filter(({ there }) => !there()).map(({ what }) => what);

/** Commands of podman, each with the settings above. */
export class Podman {
  /** Settings are kept in `folder`. */
  constructor(folder) {
    const file = join(folder, 'containers.conf');
    writeFileSync(file, SETTINGS);
    this.env = { ...process.env, CONTAINERS_CONF: file };
  }

  /** Runs podman with these arguments; gives its standard output. */
  run(...args) {
    return command('podman', args, { env: this.env });
  }

  /** The same, for what may be gone already. */
  try(...args) {
    return this.run(...args).catch(() => '');
  }

  /** What a container wrote to either of its outputs. */
  logs(id, ...args) {
    return command('podman', ['logs', ...args, id], { env: this.env, both: true }).catch(() => '');
  }
}

/** Runs a command to its end and gives its standard output, or both outputs. `input` goes to its standard input. */
export function command(program, args, { env = process.env, input, both = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    const [out, err] = [[], []];
    child.stdout.on('data', (chunk) => out.push(chunk));
    child.stderr.on('data', (chunk) => (both ? out : err).push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(Buffer.concat(out).toString());
      else reject(new Problem(`${program} ${args.join(' ')} ended with code ${code}\n${Buffer.concat(err)}`));
    });
    child.stdin?.on('error', () => {}).end(input);
  });
}
