// A provider's own program: started, waited for and stopped by its id.
import { Child } from '../../../lib/child.mjs';
import { probe, until } from '../../../lib/net.mjs';

const READY_MS = 60_000; // an interpreter with a large framework, on a busy machine

/** Starts a program and waits until `ready`, an address of it, answers 200. */
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

const CHANGE_MS = 10_000; // from asking for new keys until they are published

/** Has a provider change its keys, and waits until its key set says so. */
export async function changedKeys(keySet, change) {
  const old = (await probe(keySet)).body;
  change();
  await until(CHANGE_MS, async () => (await probe(keySet)).body !== old, () => `${keySet} is what it was`);
}
