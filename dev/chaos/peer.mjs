// Which process is at the other end of a connection over loopback: the kernel's table of connections has it. Reading that table takes the kernel
// a tenth of a second where there are thousands of them, so connections that come together are looked up together, and looking takes no more
// than a part of the time.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const IDLE_PART = 2; // times as long as a look took, nobody looks again

const hex = (port) => port.toString(16).toUpperCase().padStart(4, '0');

/** The inode of the socket that connected from `port` to `target`, both on 127.0.0.1, by the kernel's table. */
function inodeOf(table, port, target) {
  const at = table.indexOf(`0100007F:${hex(port)} 0100007F:${hex(target)} `);
  return at < 0 ? undefined : table.slice(at, table.indexOf('\n', at)).split(/\s+/)[8];
}

/** The inodes of the sockets of a process. */
function socketsOf(pid) {
  try {
    return new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      } catch {
        return undefined; // closed meanwhile
      }
    }));
  } catch {
    return new Set(); // ended meanwhile
  }
}

export class Peers {
  constructor() {
    Object.assign(this, { pids: {}, asked: [], next: 0, timer: undefined });
  }

  /** Which of these processes made a connection; undefined if none of them did. */
  of(socket, names) {
    const { remotePort: port, localPort: target } = socket;
    if (!port) return undefined; // gone already
    return new Promise((resolve) => {
      this.asked.push({ port, target, names, resolve });
      this.timer ??= setTimeout(() => this.look(), Math.max(0, this.next - performance.now()));
    });
  }

  look() {
    const began = performance.now();
    const asked = this.asked.splice(0);
    this.timer = undefined;
    const table = readFileSync('/proc/net/tcp', 'latin1');
    const sockets = Object.fromEntries([...new Set(asked.flatMap(({ names }) => names))].map((name) => [name, socketsOf(this.pids[name])]));
    for (const { port, target, names, resolve } of asked) {
      const inode = inodeOf(table, port, target);
      resolve(names.find((name) => inode && sockets[name].has(inode)));
    }
    this.next = performance.now() + IDLE_PART * (performance.now() - began);
  }
}
