// Which process is at the other end of a connection over loopback: the kernel's table of connections has it.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const hex = (port) => port.toString(16).toUpperCase().padStart(4, '0');

/** The inode of the socket that connected from `port` to `target`, both on 127.0.0.1. */
function inodeOf(port, target) {
  const ends = `0100007F:${hex(port)} 0100007F:${hex(target)} `;
  const table = readFileSync('/proc/net/tcp', 'latin1');
  const at = table.indexOf(ends);
  return at < 0 ? undefined : table.slice(at, table.indexOf('\n', at)).split(/\s+/)[8];
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

/** Which of these processes made the connection, by their ids (name → id); undefined if none of them did. */
export function peerOf(socket, names, pids) {
  const inode = socket.remotePort && inodeOf(socket.remotePort, socket.localPort); // without a port it is gone already
  return inode && names.find((name) => holds(pids[name], `socket:[${inode}]`));
}
