// People in a world, and a history of what happened to them: opened, lived in, and closed whatever happens.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { now, watchStalls } from '../lib/clock.mjs';
import { History, readHistory } from './history.mjs';
import { gather } from './people.mjs';
import { openWorld } from './world.mjs';

/**
 * Opens a world below `folder`, has `live({world, history, crowd, people})` make of it what it likes, closes everything and gives the path of
 * the history. `people.begin()` has the crowd do what it does until `people.stop()`, at the latest until the end.
 */
export async function recorded({ folder, run, random, life, ...options }, live) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const world = await openWorld({ folder: join(folder, 'state'), ...options });
  const file = join(folder, 'history.jsonl');
  const history = new History(file);
  history.add({ type: 'run', ...run, topology: options.topology, begin: now() });
  const crowd = gather(world, history, random, life);
  const noteStall = (stall) => history.add({ type: 'stall', ...stall });
  const stopStalls = watchStalls(noteStall);
  world.network.onStall = noteStall;
  let isOver = false;
  let running;
  const people = {
    begin() { running = crowd.run(() => isOver); },
    async stop() {
      isOver = true;
      await running;
    },
  };
  try {
    await live({ world, history, crowd, people });
  } finally {
    await people.stop();
    stopStalls();
    crowd.close();
    await world.close();
    for (const line of readHistory(world.providerLog)) history.add({ type: 'provider', ...line });
    await history.close();
  }
  return file;
}
