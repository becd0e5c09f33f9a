// People, each with two browsers: they look around all the time, from both edges at once, sign in when they are signed out, sign out, and are
// signed out from elsewhere. What they decide comes from a seed; what they meet decides how far they get.
import { now } from '../lib/clock.mjs';
import { pause } from '../lib/net.mjs';
import { field } from '../tests/product/grpc.mjs';
import { Caller } from '../failover.mjs';
import { saysOver, saysTokenGone } from './answers.mjs';
import { Browser } from './browser.mjs';

const BROWSERS = ['phone', 'desk'];
const LOOK_PAUSE_MS = [100, 350];
const LIFE_PAUSE_MS = [500, 1_800];
const CALLBACK_MS = 2_500; // that the answer to a callback may take while something is broken
const LOOKS = { me: 5, app: 4, status: 1 };
const LIFE = { signOut: 4, endOthers: 3, signInAgain: 3, operatorEnds: 4, operatorEndsAll: 1, endsWhileSigningIn: 1, providerSignOut: 3, nothing: 12 };

/** Calls of an operator, at a session service and not through any edge. */
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

  /** Looks around with one browser until told to stop. */
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

  /** Who is told that a session is over, or has no token any more, signs in anew. */
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

  /** Everything of this person is ended by an operator while the callback of a sign-in is being answered. */
  async endWhileSigningIn(browser, service) {
    const afterMs = this.random.between(0, CALLBACK_MS);
    let ending;
    await this.signIn(browser, () => { ending = pause(afterMs).then(() => this.operator.endAll(service, this.account)); });
    await ending;
  }

  /** Signs in and out, and is signed out, until told to stop. */
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

/** Everybody. `run` lasts until told to stop; what is under way then is waited for. */
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
