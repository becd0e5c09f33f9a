// Finds the process at the other end of a loopback connection in the kernel's table of connections. With thousands of
// connections the kernel needs a tenth of a second to read it. Simultaneous connections therefore share a lookup,
// and only the bytes of new connections wait for it.
import { readdir, readFile, readlink } from 'node:fs/promises';

const hex = (port) => port.toString(16).toUpperCase().padStart(4, '0');

/** The inode of the socket that connected from `port` to `target`, both on 127.0.0.1, from the kernel's table. */
function inodeOf(table, port, target) {
  const at = table.indexOf(`0100007F:${hex(port)} 0100007F:${hex(target)} `);
  return at < 0 ? undefined : table.slice(at, table.indexOf('\n', at)).split(/\s+/)[8];
}

/** The inodes of the sockets of a process. */
async function socketsOf(pid) {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []); // the process has ended
  const targets = await Promise.all(descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))); // closed in the meantime
  return new Set(targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]));
}

export class Peers {
  constructor() {
    Object.assign(this, { pids: {}, asked: [], looking: false });
  }

  /** Which of these processes made a connection; undefined if none did. */
  of(socket, names) {
    const { remotePort: port, localPort: target } = socket;
    if (!port) return undefined; // already closed
    return new Promise((resolve) => {
      this.asked.push({ port, target, names, resolve });
      if (!this.looking) this.look();
    });
  }

  async look() {
    this.looking = true;
    while (this.asked.length > 0) {
      const asked = this.asked.splice(0);
      const table = await readFile('/proc/net/tcp', 'latin1');
      const all = [...new Set(asked.flatMap(({ names }) => names))];
      const sockets = Object.fromEntries(await Promise.all(all.map(async (name) => [name, await socketsOf(this.pids[name])])));
      for (const { port, target, names, resolve } of asked) {
        const inode = inodeOf(table, port, target);
        resolve(names.find((name) => inode && sockets[name].has(inode)));
      }
    }
    this.looking = false;
  }
}
