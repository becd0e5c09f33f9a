// Starts clients.mjs in the network namespace of the clients, with the cluster's name server, and asks it to do things.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./clients.mjs', import.meta.url));

export class Clients {
  /** Clients of a cluster that is open. */
  constructor(cluster) {
    const resolver = join(cluster.folder, 'resolv.conf');
    writeFileSync(resolver, `nameserver ${cluster.gateway}\nsearch svc.cluster.local\noptions ndots:5\n`);
    this.waiting = new Map();
    this.number = 0;
    this.child = spawn('nsenter', [
      '--target', String(cluster.clientPid), '--net', 'unshare', '--mount', 'sh', '-c', 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"', 'sh',
      resolver, process.execPath, PROGRAM,
    ], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.child.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reject(new Error(error));
      else resolve(result);
    });
    this.child.on('exit', () => {
      for (const { reject } of this.waiting.values()) reject(new Error('the clients have ended'));
    });
  }

  /** Asks for one thing of clients.mjs. */
  ask(what, options) {
    this.number += 1;
    const id = this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.child.send({ id, what, options });
    });
  }

  close() {
    this.child.disconnect?.();
  }
}
