// Ends all children when the program that started them ends, even if it is killed.
// child.mjs starts it with a pipe as standard input. "+PID" and "-PID" lines list the live process groups; when the
// pipe closes, it ends the remaining groups. It ignores the terminal's signals, so that it exits last.
import { createInterface } from 'node:readline';

const GRACE_MS = 3000; // between SIGTERM and SIGKILL; a drain in this time is clean
const alive = new Set();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const pid = Number(line.slice(1));
    if (line[0] === '+') alive.add(pid);
    else alive.delete(pid);
  })
  .on('close', () => {
    const left = [...alive].filter((pid) => signalGroup(pid, 'SIGTERM'));
    if (left.length === 0) return;
    setTimeout(() => left.forEach((pid) => signalGroup(pid, 'SIGKILL')), GRACE_MS);
  });
