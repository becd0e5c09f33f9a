// `make soak`: people sign in, look around, sign out and are signed out for an hour, and nothing breaks. Memory, descriptors and keys are noted
// every few seconds, have to be flat in the last half, and are plotted under target/soak. The answers are judged as those of `make chaos`.
//
//   node dev/soak.mjs [--minutes 60] [--profile debug|release]
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { judge as judgeHistory } from './chaos/check.mjs';
import { processFigures } from './chaos/growth.mjs';
import { readHistory } from './chaos/history.mjs';
import { Random } from './chaos/random.mjs';
import { recorded } from './chaos/recording.mjs';
import { PLACE } from './chaos.mjs';
import { now } from './lib/clock.mjs';
import { pause } from './lib/net.mjs';
import { judge } from './soak/judge.mjs';
import { plot } from './soak/plot.mjs';

const SAMPLE_MS = 5_000;
const MINUTE_MS = 60_000;
const MARKS_MINUTES = 25; // a run has to be longer, for marks that are kept for ten minutes to come and go
const SEED = 1;
const MARKS_KEPT_MS = 10 * MINUTE_MS;
const MARKS = 'marks for 100 sign-ins of ten minutes'; // how many there are follows how many people sign in

// What begins sign-ins is remembered for as long as one may take, an hour by default: longer than half of a run.
const EDGE_ENV = { EDGE_TRANSACTION_DURATION: '600' };

/** Keys by what becomes of them: those of sessions, and marks that are left for a while. */
function countsOf(keys) {
  const sum = (letters) => letters.reduce((total, letter) => total + (keys[letter] ?? 0), 0);
  return { sessions: sum(['s+', 'i', 'i+', 'o', 'o+']), marks: sum(['s', 'm', 'm+', 'l', 'w']), 'never expire': Object.keys(keys).filter((letter) => letter.endsWith('!')).reduce((total, letter) => total + keys[letter], 0) };
}

/** Notes all figures once. */
async function sample(world, history, series, at) {
  const note = (name, figure, value) => {
    const key = `${figure} ${name}`;
    if (!series.has(key)) series.set(key, { name, figure, points: [] });
    series.get(key).points.push([at, value]);
  };
  for (const name of [...world.edges, ...world.services, 'redis']) {
    const { bytes, descriptors } = processFigures(world.stack.pid(name));
    note(name, 'bytes', bytes);
    note(name, 'descriptors', descriptors);
  }
  const { marks, ...others } = countsOf(await world.store.keys(world));
  for (const [name, count] of Object.entries(others)) note(name, 'keys', count);
  const signIns = history.events.filter(({ kind, end }) => kind === 'sign-in' && end > now() - MARKS_KEPT_MS).length;
  if (signIns > 0) note(MARKS, 'keys', 100 * marks / signIns);
}

/** Runs for so many minutes; gives what was judged, of figures and of answers. */
async function soak({ minutes, folder, profile, say }) {
  const series = new Map();
  const run = { seed: SEED, seconds: minutes * 60 };
  const file = await recorded({ folder, run, random: new Random(SEED), topology: 'redis', profile, edgeEnv: EDGE_ENV }, async ({ world, history, people }) => {
    people.begin();
    const began = performance.now();
    for (let at = 0; at <= minutes * MINUTE_MS; at = performance.now() - began) {
      await sample(world, history, series, at);
      await pause(SAMPLE_MS);
    }
  });
  const all = [...series.values()];
  writeFileSync(join(folder, 'series.json'), JSON.stringify(all));
  writeFileSync(join(folder, 'soak.svg'), plot(all));
  say(`plotted: ${join(folder, 'soak.svg')}`);
  // nothing was broken, and nobody was sent away at the end: those rules have nothing to look at
  const { violations, counts } = judgeHistory(readHistory(file));
  return { figures: judge(all), violations: violations.filter(({ rule }) => !['recovery', 'disabled', 'growth'].includes(rule)), counts };
}

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' }, profile: { type: 'string' } } });
const minutes = Number(values.minutes);
const say = (line) => process.stdout.write(`${line}\n`);
const { figures, violations, counts } = await soak({ minutes, folder: join(PLACE, '../soak'), profile: values.profile, say });
const isJudged = ({ name }) => minutes >= MARKS_MINUTES || name !== MARKS;
say('\n| figure | of | mean of the last half | growth in it | may be | |\n|---|---|---|---|---|---|');
for (const row of figures) {
  const said = isJudged(row) ? (row.isFlat ? 'flat' : 'GROWS') : `not judged: shorter than ${MARKS_MINUTES} minutes`;
  say(`| ${row.figure} | ${row.name} | ${Math.round(row.mean)} | ${Math.round(row.growth)} | ${Math.round(row.bound)} | ${said} |`);
}
violations.forEach(({ rule, text }) => say(`violation of ${rule}: ${text}`));
const growing = figures.filter((row) => isJudged(row) && !row.isFlat).length;
say(`\n${counts.requests} requests, ${counts.sessions} sessions, ${counts.refreshes} refreshes in ${minutes} minutes: ${growing} figures grow, ${violations.length} violations`);
process.exitCode = growing + violations.length === 0 ? 0 : 1;
