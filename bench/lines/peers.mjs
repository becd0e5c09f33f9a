// What the same work costs those that others would take in our place: P1 and P2, a sign-in, what a session takes and how long a
// start takes, beside each peer of bench/peers/list.mjs in alternating rounds.
import assert from 'node:assert/strict';

import { probe } from '../../dev/lib/net.mjs';
import { request } from '../../dev/tests/product/client.mjs';
import { cpuMicros, fixed, median, saturate, shares, spread } from '../lib/measure.mjs';
import { held } from '../lib/redis.mjs';
import { releaseStack, serving, signedIn } from '../lib/services.mjs';
import { PEERS } from '../peers/list.mjs';
import { startPeers } from '../peers/start.mjs';

const SIGN_INS = 100;
const WARM_SECS = 1; // before each round, so that what it starts with is in the caches
const STARTS = 5;

export async function peers({ rounds, seconds, say, cleanup }) {
  const ours = [
    await startOurs({ id: 'ours P1', label: 'Vestibule, known', what: 'session known to the edge', cleanup }),
    await startOurs({ id: 'ours P2', label: 'Vestibule, asked each time', what: 'asked each time: edge, session-svc, Redis', edgeEnv: { EDGE_SESSION_CACHE_SECS: '0' }, cleanup }),
  ];
  const { text } = await request(ours[0].url, { headers: { cookie: ours[0].cookie } });
  const { started, missing } = await startPeers(PEERS, { bytes: Buffer.byteLength(text), say, cleanup });
  const cases = [...ours, ...started].map((one) => ({ ...one, checks: [], signIns: [], starts: [] }));
  // Somebody signs in the same way at both of ours.
  const signing = cases.filter(({ id }) => id !== 'ours P2');

  for (const one of signing) one.stored = await storedBy(one);
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      await checked(one, Buffer.byteLength(text), WARM_SECS);
      one.checks.push(await checked(one, Buffer.byteLength(text), seconds));
      say(`round ${round} ${one.id}: ${one.checks.at(-1).micros.toFixed(1)} µs`);
    }
    for (const one of signing) {
      one.signIns.push(await signInMillis(one));
      say(`round ${round} ${one.id} sign-in: ${one.signIns.at(-1).toFixed(2)} ms`);
    }
  }
  for (const one of signing) for (let time = 0; time < STARTS; time += 1) one.starts.push(await one.restart());
  return {
    rows: [...checkRows(cases), ...signInRows(signing), ...storedRows(signing), ...sentRows(signing), ...startRows(signing)],
    peers: started.map(({ id, what, version }) => ({ id, what, version })),
    missing: missing.map(({ id, what, reason }) => ({ id, what, reason })),
  };
}

/** Both of our programs with Redis, as a case beside the peers'. */
async function startOurs({ id, label, what, edgeEnv, cleanup }) {
  const stack = cleanup(await releaseStack({ store: 'redis', accessTokenTtl: 3600, edgeEnv: { OIDC_PAR: 'off', ...edgeEnv } })); // as peers do
  const { cookie } = await signedIn(stack);
  return {
    id, label, what, cookie, ours: true, url: `${stack.edgeUrl}/api/auth/me`, redisPort: Number(new URL(stack.store).port), pids: () => serving(stack), signIn: () => signedIn(stack),
    async restart() {
      const both = ['session', 'edge'];
      for (const name of both) await stack.kill(name);
      const began = performance.now();
      const starting = Promise.all(both.map((name) => stack.start(name)));
      for (const name of both) while ((await probe(`${stack.adminUrls[name]}/readyz`)).status !== 200) { /* asked again at once */ }
      const took = performance.now() - began;
      await starting;
      return took;
    },
  };
}

/** Full load by somebody signed in, who gets the answer before and after it; nobody else does. */
async function checked({ id, url, cookie, pids }, bytes, seconds) {
  const headers = { cookie };
  const answered = async () => {
    const { status, text } = await request(url, { headers });
    assert.deepEqual([status, Buffer.byteLength(text)], [200, bytes], `${id}: ${text}`);
  };
  assert.notEqual((await request(url)).status, 200, `${id} answers strangers`);
  await answered();
  const result = await saturate({ url, headers, pids: pids(), seconds });
  await answered();
  return result;
}

/** What a sign-in leaves in Redis, from as many as warm up for those that are timed. They are over before anything of them expires. */
async function storedBy({ redisPort, signIn }) {
  const before = redisPort && held(redisPort);
  for (let time = 0; time < SIGN_INS; time += 1) await signIn();
  const after = redisPort && held(redisPort);
  return redisPort && { bytes: (after.bytes - before.bytes) / SIGN_INS, keys: (after.keys - before.keys) / SIGN_INS };
}

async function signInMillis({ pids, signIn }) {
  const serving = pids();
  const used = () => serving.reduce((sum, [, pid]) => sum + cpuMicros(pid), 0);
  const before = used();
  for (let time = 0; time < SIGN_INS; time += 1) await signIn();
  return (used() - before) / SIGN_INS / 1000;
}

// ---------------------------------------------------------------- rows: each tells whose it is and with which others it compares

/** A row of each case; `group` is what they are compared in. */
function rows(cases, group, { suffix = '', work, unit, figure }) {
  return cases.map((one) => ({ id: `${one.ours ? '' : 'peer '}${one.id}${suffix && ` ${suffix}`}`, group, label: one.label, ours: one.ours, work: work(one), unit, ...figure(one) }));
}

const checkRows = (cases) => rows(cases, 'check', {
  work: ({ what }) => `profile, ${what}`, unit: 'CPU µs',
  figure: ({ checks }) => ({ ...spread(checks.map(({ micros }) => micros)), by: shares(checks), perSecond: median(checks.map(({ perSecond }) => perSecond)) }),
});

const signInRows = (cases) => rows(cases, 'sign-in', { suffix: 'sign-in', work: () => 'login and callback, provider excluded', unit: 'CPU ms', figure: ({ signIns }) => spread(signIns, 2) });

const storedRows = (cases) => rows(cases.filter(({ stored }) => stored), 'stored', {
  suffix: 'stored', work: () => 'what a sign-in leaves in Redis: session, indexes, marks against replay', unit: 'bytes',
  figure: ({ stored }) => ({ ...fixed(stored.bytes), note: `${stored.keys.toFixed(1)} keys` }),
});

const sentRows = (cases) => rows(cases, 'sent', { suffix: 'sent', work: () => 'cookies of a session as the browser sends them', unit: 'bytes', figure: ({ cookie }) => fixed(cookie.length) });

const startRows = (cases) => rows(cases, 'start', { suffix: 'start', work: () => 'start to ready, Redis there already', unit: 'ms', figure: ({ starts }) => spread(starts, 0) });
