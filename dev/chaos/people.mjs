// People with two browsers each. They browse at both edges, sign in, sign out, and are signed out from elsewhere.
// A seed determines their decisions; the responses determine how far they get.
import { now } from '../lib/clock.mjs';
import { pause } from '../lib/net.mjs';
import { field } from '../tests/product/grpc.mjs';
import { Caller } from '../failover.mjs';
import { saysOver, saysTokenGone } from './answers.mjs';
import { Browser } from './browser.mjs';

const BROWSERS = ['phone', 'desk'];
const LOOK_PAUSE_MS = [100, 350];
const LIFE_PAUSE_MS = [500, 1_800];
const CALLBACK_MS = 2_500; // the longest response to a callback during a fault
const LOOKS = { me: 5, app: 4, status: 1 };
const LIFE = { signOut: 4, endOthers: 3, signInAgain: 3, operatorEnds: 4, operatorEndsAll: 1, endsWhileSigningIn: 1, providerSignOut: 3, nothing: 12 };

/** An operator's calls to a session service, past the edge. */
class Operator {
  constructor(world, history) {
    Object.assign(this, { world, history });
    this.callers = Object.fromEntries(world.services.map((name, at) => [name, new Caller(world.stack.sessionUrls[at])]));
  }

  async call(kind, service, method, message, about) {
    const event = { type: 'request', kind, service, ...about, begin: now() };
    const { status } = await this.callers[service].call(method, message);
    return this.history.add({ ...event, grpc: status, end: now() });
  }

  end(service, browser) {
    return this.call('operator-ends', service, 'EndSession', field(1, browser.sessionId), { who: browser.account.sub, session: browser.session });
  }

  endAll(service, account) {
    const message = Buffer.concat([field(1, this.world.stack.issuer), field(2, account.sub)]);
    return this.call('operator-ends-all', service, 'EndSessions', message, { who: account.sub });
  }

  close() {
    Object.values(this.callers).forEach((caller) => caller.close());
  }
}

class Person {
  constructor(world, history, { operator, account, random }) {
    Object.assign(this, { world, operator, random });
    this.browsers = BROWSERS.map((name) => new Browser(world, history, account, `${account.sub}/${name}`));
    this.account = account;
  }

  /** Browses with one browser until stopped. */
  async look(browser, random, isOver) {
    while (!isOver()) {
      if (browser.session && !browser.isBusy) {
        const asked = browser.session;
        const looks = Array.from({ length: random.between(1, 2) }, () => browser[random.weighted(LOOKS)](random.pick(this.world.edges)));
        for (const answer of await Promise.all(looks)) this.takeIn(browser, asked, answer);
      }
      await pause(random.between(...LOOK_PAUSE_MS));
    }
  }

  /** A browser whose session has ended, or has no token left, signs in again. */
  takeIn(browser, asked, answer) {
    if (browser.session !== asked) return;
    if (saysOver(answer)) browser.client.cookies(browser.url).clear();
    else if (saysTokenGone(answer)) browser.needsSignIn = true;
  }

  async signIn(browser, onReturn) {
    browser.isBusy = true; // a browser shows one page at a time
    await browser.signIn(this.random.pick(this.world.edges), onReturn);
    [browser.isBusy, browser.needsSignIn] = [false, false];
  }

  /** An operator ends all sessions of this person while the edge answers the callback of a sign-in. */
  async endWhileSigningIn(browser, service) {
    const afterMs = this.random.between(0, CALLBACK_MS);
    let ending;
    await this.signIn(browser, () => { ending = pause(afterMs).then(() => this.operator.endAll(service, this.account)); });
    await ending;
  }

  /** Signs in and out, and is signed out, until stopped. */
  async live(isOver) {
    const { random, operator, world } = this;
    while (!isOver()) {
      for (const browser of this.browsers) if (!browser.session || browser.needsSignIn) await this.signIn(browser);
      await pause(random.between(...LIFE_PAUSE_MS));
      const [deed, browser, edge, service] = [random.weighted(LIFE), random.pick(this.browsers), random.pick(world.edges), random.pick(world.services)];
      if (isOver()) break;
      if (deed === 'signInAgain') await this.signIn(browser);
      else if (deed === 'endsWhileSigningIn') await this.endWhileSigningIn(browser, service);
      else if (deed === 'operatorEndsAll') await operator.endAll(service, this.account);
      else if (!browser.session) continue;
      else if (deed === 'signOut') await browser.signOut(edge);
      else if (deed === 'endOthers') await browser.endOthers(edge);
      else if (deed === 'operatorEnds') await operator.end(service, browser);
      else if (deed === 'providerSignOut') await browser.signOutAtProvider();
    }
  }
}

/** All people. `run` lasts until stopped and waits for pending actions. */
export function gather(world, history, random) {
  const operator = new Operator(world, history);
  const people = world.accounts.map((account) => new Person(world, history, { operator, account, random: random.branch() }));
  const browsers = people.flatMap((person) => person.browsers);
  return {
    people, browsers, operator,
    run(isOver) {
      return Promise.all(people.flatMap((person) => [person.live(isOver), ...person.browsers.map((browser) => person.look(browser, person.random.branch(), isOver))]));
    },
    close() {
      browsers.forEach((browser) => browser.close());
      operator.close();
    },
  };
}
