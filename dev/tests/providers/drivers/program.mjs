// A provider's program: starts it, waits for it, and stops it by its process id.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Child } from '../../../lib/child.mjs';
import { freePort, probe, until } from '../../../lib/net.mjs';

const READY_MS = 60_000; // an interpreter with a large framework, on a busy machine

/** Starts a program and waits until its address `ready` answers 200. */
export async function startProgram(name, command, args, { ready, ...options }) {
  const child = new Child(name, command, args, options);
  try {
    await until(READY_MS, async () => {
      if (child.ended) throw new Error(`${name} ended with ${child.ended.signal ?? child.ended.code}:\n${child.tail(60)}`);
      return (await probe(ready)).status === 200;
    }, () => `${name} was not ready:\n${child.tail(60)}`);
  } catch (error) {
    await child.stop('SIGKILL');
    throw error;
  }
  return child;
}

/** Starts a provider in a new folder. `start({ folder, port, origin })` starts its program, and again for new keys. */
export async function startSite(name, start) {
  const folder = mkdtempSync(join(tmpdir(), `vestibule-${name}-`));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  let child = await start({ folder, port, origin });
  return {
    origin,
    async rotateKeys() {
      await child.stop();
      child = await start({ folder, port, origin });
    },
    log: () => child.output,
    async stop() {
      await child.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const CHANGE_MS = 10_000; // from the request for new keys until they are published

/** Makes a provider change its keys, and waits until its key set shows it. */
export async function changedKeys(keySet, change) {
  const old = (await probe(keySet)).body;
  change();
  await until(CHANGE_MS, async () => (await probe(keySet)).body !== old, () => `${keySet} is what it was`);
}
