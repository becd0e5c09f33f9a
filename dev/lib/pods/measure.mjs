// One event under load: who asks while it happens, who signs out meanwhile, and what is there afterwards.
import { watchStalls } from '../clock.mjs';
import { pause } from '../net.mjs';
import { complaints } from './contract.mjs';

const LEAD_MS = 2_000; // of load before the event
const TAIL_MS = 2_000; // and when all is well again
const LEAVERS = 3; // sign out while it happens

/**
 * Runs an event; gives its figures.
 * @param {object} world {cluster, clients, edgeUrl, accounts, cookies, ended, rate, seconds, say, …}
 */
export async function measure(event, world) {
  const { cluster, clients, edgeUrl, accounts } = world;
  if (event.before) {
    await event.before(world);
    await cluster.settled();
  }
  cluster.overran.length = 0;
  const since = Date.now();
  let stalledMs = 0;
  const stopWatching = watchStalls(({ begin, end }) => { stalledMs += end - begin; });
  const leavers = await clients.ask('signIn', { edgeUrl, accounts, count: LEAVERS });
  const began = performance.now();
  await clients.ask('startLoad', { edgeUrl, cookies: world.cookies, rate: world.rate });
  await pause(LEAD_MS);
  let honouredMs = 0;
  const leaving = (async () => {
    for (const cookie of leavers) {
      const others = cluster.podsOf('edge').filter(({ isReady }) => isReady).map(({ ip }) => `http://${ip}:3000`);
      const honoured = await clients.ask('signOut', { edgeUrl, cookie, others });
      if (honoured === null) continue; // nobody said that it has ended
      world.ended.push(cookie);
      honouredMs = Math.max(honouredMs, honoured);
    }
  })();
  let trouble;
  try {
    await event.run(world);
    await cluster.settled();
  } catch (error) {
    trouble = error;
  }
  await leaving;
  await pause(Math.max(TAIL_MS, world.seconds * 1_000 - (performance.now() - began)));
  const seen = await clients.ask('stopLoad');
  stopWatching();
  if (trouble) throw trouble;
  const lost = (await clients.ask('lost', { edgeUrl, cookies: world.cookies })).length;
  const undone = await clients.ask('honoured', { edgeUrl, cookies: world.ended });
  world.ended = world.ended.filter((cookie) => !undone.includes(cookie)); // told once
  // what is gone is signed in again, so that the next event begins with everybody
  if (lost > 0) world.cookies = await clients.ask('signIn', { edgeUrl, accounts, count: world.cookies.length });
  const result = {
    name: event.name, began: since, sent: seen.sent, failed: seen.failed, why: seen.why, lost: Math.max(lost, seen.signedOut), longestRefusalMs: seen.longestRefusalMs,
    slowestMs: seen.slowestMs, honouredMs: Math.round(honouredMs), undone: undone.length, overran: [...cluster.overran], stalledMs: Math.round(stalledMs),
  };
  return { ...result, complaints: complaints(event.name, result) };
}
