// A user whose account the provider disables during the run. Their pages need no token, so only a revalidation ends
// their sessions.
import { appendFileSync } from 'node:fs';

import { now } from '../lib/clock.mjs';
import { pause } from '../lib/net.mjs';
import { saysOver } from './answers.mjs';
import { Browser } from './browser.mjs';

const LOOK_PAUSE_MS = 300;
const LIMIT_MS = 90_000; // the time between two revalidations, and the pauses after two that failed in an outage

export class Leaver {
  constructor(world, history) {
    Object.assign(this, { world, history, account: world.leaver, isOver: false });
    this.browsers = ['phone', 'desk'].map((name) => new Browser(world, history, world.leaver, `${world.leaver.sub}/${name}`));
  }

  async signIn() {
    for (const [at, browser] of this.browsers.entries()) await browser.signIn(this.world.edges[at]);
  }

  /** Requests its profile at each edge until it is signed out everywhere or stopped. */
  async look() {
    for (let round = 0; !this.isOver && this.signedIn().length > 0; round += 1) {
      const edge = this.world.edges[round % this.world.edges.length];
      for (const browser of this.signedIn()) if (saysOver(await browser.me(edge))) browser.client.cookies(browser.url).clear();
      await pause(LOOK_PAUSE_MS);
    }
  }

  signedIn() {
    return this.browsers.filter(({ session }) => session);
  }

  /** From now on the provider refuses every grant of the account. */
  disable() {
    this.history.add({ type: 'disabled', who: this.account.sub, at: now() });
    appendFileSync(this.world.disabledFile, `${this.account.sub}\n`);
  }

  /** Waits for the sessions to end, and records whether they did. */
  async leave(looking) {
    const event = { type: 'left', who: this.account.sub, begin: now() };
    const limit = setTimeout(() => { this.isOver = true; }, LIMIT_MS);
    await looking.finally(() => clearTimeout(limit));
    this.history.add({ ...event, ok: this.signedIn().length === 0, end: now() });
  }
}
