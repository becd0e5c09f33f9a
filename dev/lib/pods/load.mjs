// Load as people make it: so many requests a second whatever is answered, over connections that are kept, and no request twice.
import http from 'node:http';

import { NAVIGATION } from '../../tests/product/client.mjs';

const REQUEST_MS = 10_000; // who waits for longer counts as refused
const TICK_MS = 5;

/** What is asked for: a path, what a good answer is, and its share of all requests. */
const KINDS = [
  { name: 'me', share: 0.5, path: '/api/auth/me', headers: { accept: 'application/json' }, good: (status) => status === 200, signedOut: (status) => status === 204 || status === 401 },
  { name: 'page', share: 0.3, path: '/account', headers: NAVIGATION, good: (status) => status === 200, signedOut: (status) => status === 302 || status === 303 || status === 401 },
  { name: 'public', share: 0.2, path: '/', headers: NAVIGATION, good: (status) => status === 200, signedOut: () => false },
];

/** One request: its status, or 0 and what went wrong. */
export function ask(url, { agent = false, headers, timeout = REQUEST_MS } = {}) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => request.destroy(new Error('no answer in time')), timeout);
    const done = (status, error) => {
      clearTimeout(timer);
      resolve({ status, error });
    };
    const request = http.get(url, { agent, headers }, (response) => {
      response.resume().on('end', () => done(response.statusCode)).on('error', (error) => done(0, error.code ?? error.message));
    });
    request.on('error', (error) => done(0, error.code ?? error.message));
  });
}

/** What one person has noticed: how long nothing was answered well, and whether they were signed out. */
class Person {
  constructor(cookie) {
    Object.assign(this, { cookie, refusedSince: undefined, longestMs: 0, isSignedOut: false });
  }

  noted(isGood, began, ended) {
    if (!isGood) this.refusedSince = Math.min(this.refusedSince ?? began, began);
    else if (this.refusedSince !== undefined && began >= this.refusedSince) {
      this.longestMs = Math.max(this.longestMs, ended - this.refusedSince);
      this.refusedSince = undefined;
    }
  }
}

/** Begins to ask for `cookies`, `rate` times a second; `stop` waits for what is under way and gives what was seen. */
export function startLoad({ edgeUrl, cookies, rate }) {
  const agent = new http.Agent({ keepAlive: true, scheduling: 'fifo', maxSockets: 256 });
  const people = cookies.map((cookie) => new Person(cookie));
  const seen = { sent: 0, failed: 0, why: {}, slowestMs: 0, signedOut: 0 };
  const under = new Set();
  const began = performance.now();
  let due = began;
  const kindOf = (number) => {
    const at = (number * 0.618033988749895) % 1; // spread evenly, always in the same order
    return KINDS.find((_, index) => at < KINDS.slice(0, index + 1).reduce((sum, { share }) => sum + share, 0));
  };
  const one = async (number) => {
    const kind = kindOf(number) ?? KINDS[0];
    const person = people[number % people.length];
    const from = performance.now();
    const { status, error } = await ask(`${edgeUrl}${kind.path}`, { agent, headers: { ...kind.headers, cookie: person.cookie } });
    const to = performance.now();
    seen.slowestMs = Math.max(seen.slowestMs, to - from);
    const isGood = kind.good(status);
    // what everybody may see says nothing about a session
    if (kind.name !== 'public') person.noted(isGood, from, to);
    if (isGood) return;
    seen.failed += 1;
    const what = `${kind.name} ${error ?? status}`;
    const [first, count] = seen.why[what] ?? [Math.round(from - began), 0];
    seen.why[what] = [first, count + 1, Math.round(from - began)];
    if (kind.signedOut(status) && !person.isSignedOut) {
      person.isSignedOut = true;
      seen.signedOut += 1;
    }
  };
  const timer = setInterval(() => {
    for (; due < performance.now(); due += 1_000 / rate) {
      const asking = one(seen.sent).finally(() => under.delete(asking));
      under.add(asking);
      seen.sent += 1;
    }
  }, TICK_MS);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(under);
      agent.destroy();
      const now = performance.now();
      const longestMs = Math.max(...people.map(({ longestMs: longest, refusedSince }) => Math.max(longest, refusedSince === undefined ? 0 : now - refusedSince)));
      return { ...seen, slowestMs: Math.round(seen.slowestMs), longestRefusalMs: Math.round(longestMs), signedOutCookies: people.filter(({ isSignedOut }) => isSignedOut).map(({ cookie }) => cookie) };
    },
  };
}
