// Restarts a stack process that ended unexpectedly, and gives up if it keeps ending.
import { pause } from './net.mjs';

const RESTARTS = 5; // in a row; after a sixth end within the window, a restart does not help
const WINDOW_MS = 60_000; // earlier ends do not count
const STEP_MS = 500; // the wait grows by this much, so that a process that cannot start does not keep a core busy

const reasonOf = ({ code, signal }) => signal ?? `code ${code}`;

/**
 * Returns a function to call when a process ended: its `name`, how it `ended`, the end of its `log`, and `start`,
 * which restarts it and waits until it is ready. `say` receives each step, `giveUp` the reason to give up.
 */
export function reviver({ say, giveUp, isStopping, now = Date.now, wait = pause }) {
  const ends = new Map();

  return async function revive(name, ended, log, start) {
    let reason = `ended (${reasonOf(ended)})`;
    let lastWords = log;
    while (!isStopping()) {
      const recent = [...(ends.get(name) ?? []), now()].filter((at) => now() - at < WINDOW_MS);
      ends.set(name, recent);
      if (recent.length > RESTARTS) {
        giveUp(`${name} ended ${recent.length} times within a minute; it is not started again. The last it wrote:\n${lastWords}`);
        return;
      }
      say(`${name} ${reason}; starting it again`);
      await wait((recent.length - 1) * STEP_MS);
      if (isStopping()) return;
      try {
        const { pid } = await start();
        say(`${name} is back (process ${pid})`);
        return;
      } catch (error) {
        [reason, lastWords] = ['did not become ready', error.message];
      }
    }
  };
}
