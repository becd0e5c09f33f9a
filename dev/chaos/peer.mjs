// Which process is at the other end of a connection over loopback: the kernel's table of connections has it.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const hex = (port) => port.toString(16).toUpperCase().padStart(4, '0');

/** The inode of the socket that connected from `port` to `target`, both on 127.0.0.1. */
function inodeOf(port, target) {
  const ends = `0100007F:${hex(port)} 0100007F:${hex(target)} `;
  const line = readFileSync('/proc/net/tcp', 'latin1').split('\n').find((text) => text.includes(ends));
  return line?.trim().split(/\s+/)[9];
}

function holds(pid, socket) {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`) === socket;
      } catch {
        return false; // closed meanwhile
      }
    });
  } catch {
    return false; // ended meanwhile
  }
}

/** The name of the process of `pids` (name → id) that made this connection; undefined if none of them did. */
export function peerOf(socket, pids) {
  const inode = inodeOf(socket.remotePort, socket.localPort);
  return inode && Object.keys(pids).find((name) => holds(pids[name], `socket:[${inode}]`));
}
