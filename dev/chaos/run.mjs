// Runs one seed: people, scheduled faults, recovery, checks, the end of all sessions, and final checks. Writes the
// events to a history, which the checker judges.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { now, watchStalls } from '../lib/clock.mjs';
import { pause, until } from '../lib/net.mjs';
import { judge } from './check.mjs';
import { makeFaults } from './faults.mjs';
import { isLeft, processFigures } from './growth.mjs';
import { History, readHistory } from './history.mjs';
import { Leaver } from './leaver.mjs';
import { gather } from './people.mjs';
import { Random } from './random.mjs';
import { hasGrown } from './rules/growth.mjs';
import { describe, schedule, topologyOf } from './schedule.mjs';
import { openWorld } from './world.mjs';

const CALM_MS = 3_000; // without faults, before people leave
const RECOVERY_LIMIT_MS = 120_000; // the wait for a recovery ends here; the checker judges the bound
const SETTLE_MS = 45_000; // for pending revocations (attempted after ten seconds) and closing connections
const SETTLE_POLL_MS = 250;

/** Waits until every browser gets its response at every edge; the checker judges the time. */
async function recover(world, history, browsers) {
  const event = { type: 'recovery', begin: now() };
  const isWell = async () => {
    const answers = await Promise.all(browsers.flatMap((browser) => world.edges.map((edge) => browser.me(edge))));
    return answers.every(({ status }) => status === 200 || status === 204);
  };
  let ok = false;
  for (; !ok && now() - event.begin < RECOVERY_LIMIT_MS; await pause(SETTLE_POLL_MS)) ok = await isWell();
  history.add({ ...event, ok, end: now() });
}

/** Requests every session that ever existed at every edge. */
async function takeStock(world, browsers) {
  for (const browser of browsers) {
    for (const cookie of browser.had.values()) for (const edge of world.edges) await browser.lookAt(edge, cookie);
  }
}

const isEmpty = (keys) => !Object.keys(keys).some(isLeft);

/** Ends all sessions, waits until the system has settled, and records what remains. */
async function leave(world, history, { people, operator, browsers, baseline }) {
  const isEnded = async (account) => (await operator.endAll(world.services[0], account)).grpc === 0;
  for (const { account } of people) await until(RECOVERY_LIMIT_MS, () => isEnded(account), () => `the sessions of ${account.sub} cannot be ended`);
  browsers.forEach((browser) => browser.close());
  const end = now() + SETTLE_MS;
  for (;;) {
    const keys = await world.store.keys(world);
    const left = [...world.edges, ...world.services].map((name) => ({ type: 'growth', name, at: now(), before: baseline[name], after: processFigures(world.stack.pid(name)) }));
    if (now() > end || (isEmpty(keys) && !left.some(hasGrown))) {
      [...left, { type: 'keys', at: now(), keys }].forEach((event) => history.add(event));
      return;
    }
    await pause(SETTLE_POLL_MS);
  }
}

/** People arrive, faults start and end, people leave; the history records all events. */
async function live(world, history, crowd, { seconds, faults, say }) {
  for (const person of crowd.people) for (const browser of person.browsers) await person.signIn(browser);
  const baseline = Object.fromEntries([...world.edges, ...world.services].map((name) => [name, processFigures(world.stack.pid(name))]));
  const leaver = new Leaver(world, history);
  await leaver.signIn();
  const looking = leaver.look();
  const disabling = pause((seconds * 1_000) / 2).then(() => leaver.disable());
  let isOver = false;
  const people = crowd.run(() => isOver);
  try {
    await makeFaults(world, history, faults, (fault) => say(`${(fault.at / 1_000).toFixed(1)} s: ${describe(fault)} for ${fault.lasts} ms`));
    await recover(world, history, crowd.browsers);
    await pause(CALM_MS);
    await disabling;
  } catch (error) {
    // Otherwise this user's requests would keep the process alive for ever.
    leaver.isOver = true;
    await Promise.allSettled([looking, disabling]);
    throw error;
  } finally {
    isOver = true;
    await people;
  }
  await leaver.leave(looking);
  await takeStock(world, [...crowd.browsers, ...leaver.browsers]);
  leaver.browsers.forEach((browser) => browser.close());
  await leave(world, history, { ...crowd, baseline });
}

/**
 * Runs a seed with faults for some seconds. Returns {seed, folder, violations, counts}; its files are in `folder`.
 */
export async function runSeed({ seed, seconds, folder, kinds, topology = topologyOf(seed), say = () => {} }) {
  const random = new Random(seed).branch();
  const faults = schedule(seed, seconds, { topology, kinds });
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const world = await openWorld({ folder: join(folder, 'state'), topology, faults });
  const file = join(folder, 'history.jsonl');
  const history = new History(file);
  history.add({ type: 'run', seed, seconds, topology, begin: now() });
  const crowd = gather(world, history, random);
  const noteStall = (stall) => history.add({ type: 'stall', ...stall });
  const stopStalls = watchStalls(noteStall);
  world.network.onStall = noteStall;
  try {
    await live(world, history, crowd, { seconds, faults, say });
  } finally {
    stopStalls();
    crowd.close();
    await world.close();
    for (const line of readHistory(world.providerLog)) history.add({ type: 'provider', ...line });
    await history.close();
  }
  return { seed, topology, folder, ...judge(readHistory(file)) };
}
