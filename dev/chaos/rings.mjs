// The key rings of the edges and the session services. Each process has a separate file, as a pod has its copy of a
// Secret: a change reaches one process after another.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { pause } from '../lib/net.mjs';

const KEYS_MAX = 4; // per ring; then the last key moves to the front instead of a new one
const READ_MS = 7_500; // processes read their files every five seconds

export class Rings {
  constructor(folder, { edges, services }) {
    const ring = (names, setting) => ({ names, setting, keys: [randomBytes(32).toString('hex')] });
    Object.assign(this, { folder, rings: [ring(edges, 'EDGE_SECRET_FILE'), ring(services, 'SESSION_ENCRYPTION_KEY_FILE')] });
    for (const { names, keys } of this.rings) names.forEach((name) => this.write(name, keys));
  }

  fileOf = (name) => join(this.folder, `ring-of-${name}`);

  write(name, keys) {
    writeFileSync(this.fileOf(name), keys.join('\n'), { mode: 0o600 });
  }

  /** The environment of a process. */
  environmentOf(name) {
    const { setting } = this.rings.find(({ names }) => names.includes(name));
    return { [setting]: this.fileOf(name) };
  }

  /** Puts another key first in both rings, at one process after another. */
  async bringToFront(pauseMs) {
    for (const ring of this.rings) {
      const key = ring.keys.length < KEYS_MAX ? randomBytes(32).toString('hex') : ring.keys.at(-1);
      ring.keys = [key, ...ring.keys.filter((one) => one !== key)];
      for (const name of ring.names) {
        this.write(name, ring.keys);
        await pause(pauseMs);
      }
    }
  }

  /** Waits until every process has read its file. */
  areRead() {
    return pause(READ_MS);
  }
}
