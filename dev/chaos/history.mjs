// The events in the order of their ends: a line of JSON for each request, fault, stall and observation.
import { createHash } from 'node:crypto';
import { createWriteStream, readFileSync } from 'node:fs';
import { once } from 'node:events';

/** The name of a secret in the history: twelve digits of its hash. */
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
