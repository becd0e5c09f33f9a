// Keeps the promise that no child outlives the program that started it, even when that program is killed outright.
// Started by child.mjs with a pipe as standard input: "+PID" and "-PID" lines say which process groups are alive; when the
// pipe closes, whatever is left is ended. It ignores the signals of the terminal, so that it is the last to go.
import { createInterface } from 'node:readline';

const GRACE_MS = 3000; // after SIGTERM, before SIGKILL; a drain inside this is clean
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
