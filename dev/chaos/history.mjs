// What happened, in the order in which it was over: a line of JSON for each request, fault, stall and observation. Times are milliseconds
// of this machine's clock, counted on by a monotonic one so that nothing that sets the clock reorders them.
import { createHash } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import { once } from 'node:events';

/** Now, in milliseconds since the Unix epoch. */
export const now = () => Math.round((performance.timeOrigin + performance.now()) * 10) / 10;

/** What a secret is called here: twelve digits of its hash. */
export const nameOf = (secret) => createHash('sha256').update(secret).digest('hex').slice(0, 12);

export class History {
  constructor(file) {
    this.events = [];
    this.stream = createWriteStream(file);
  }

  add(event) {
    this.events.push(event);
    this.stream.write(`${JSON.stringify(event)}\n`);
    return event;
  }

  async close() {
    this.stream.end();
    await once(this.stream, 'finish');
  }
}

export const readHistory = (file) => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));

const STALL_EVERY_MS = 20;
const STALL_MS = 100;

/** Notes each time this process was late by a tenth of a second or more: what the machine did not let anybody do in time. */
export function watchStalls(history) {
  let due = performance.now() + STALL_EVERY_MS;
  const timer = setInterval(() => {
    const late = performance.now() - due;
    if (late >= STALL_MS) history.add({ type: 'stall', begin: now() - late, end: now() });
    due = performance.now() + STALL_EVERY_MS;
  }, STALL_EVERY_MS);
  return () => clearInterval(timer);
}
