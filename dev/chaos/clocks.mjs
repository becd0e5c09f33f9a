// Gives each process a separate clock: libfaketime replaces the C library's clock. The monotonic clock is unchanged,
// as it is when an operator sets the time.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Problem } from '../lib/build.mjs';

const LIBRARIES = '/usr/lib';
const NAME = 'libfaketimeMT.so.1';

/** The folders in which Debian's package libfaketime installs its library. */
export function libfaketime() {
  for (const folder of readdirSync(LIBRARIES).filter((name) => name.endsWith('-linux-gnu'))) {
    const place = join(LIBRARIES, folder, 'faketime');
    try {
      if (readdirSync(place).includes(NAME)) return join(place, NAME);
    } catch {
      // not for this architecture
    }
  }
  throw new Problem('different clocks need libfaketime: apt-get install faketime');
}

export class Clocks {
  constructor(folder) {
    Object.assign(this, { folder, library: libfaketime() });
  }

  fileOf = (name) => join(this.folder, `clock-of-${name}`);

  /** The environment of a process; its clock is correct until it is set. */
  environmentOf(name) {
    this.set(name, 0);
    return { LD_PRELOAD: this.library, FAKETIME_TIMESTAMP_FILE: this.fileOf(name), FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1' };
  }

  set(name, ms) {
    writeFileSync(this.fileOf(name), `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1_000).toFixed(3)}\n`);
  }
}
