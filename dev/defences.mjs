// `make defences`: takes every defence out, one at a time, and wants a test to notice.
//
//   node dev/defences.mjs                     all of them
//   node dev/defences.mjs --only id,id        some
//   node dev/defences.mjs --file edge-paths   those of one table (dev/defences/edge-paths.mjs)
//   node dev/defences.mjs --check             only whether the tables fit the sources; builds nothing
//
// dev/defences/lib/table.mjs says what a table holds. A copy of the tree is built once with a switch in every defence; the variable
// DEFENCE_OFF holds the id of the one that is off. Every test runs without it first and has to pass, then those of each defence with
// it, and one has to fail. The last line is "N defences, N noticed, N unnoticed".
import { parseArgs } from 'node:util';

import { Problem } from './lib/build.mjs';
import { cargoTargets, mistakesIn, readTables, targetOf, tests } from './defences/lib/table.mjs';
import { buildTests, Runner } from './defences/lib/tests.mjs';
import { makeTree } from './defences/lib/tree.mjs';

const LANES = 2; // tests have threads of their own
const say = (text) => process.stdout.write(`${text}\n`);
const seconds = (since) => `${((Date.now() - since) / 1000).toFixed(1)} s`;

/** Does `work` for all `items`, a few at a time. */
async function inLanes(items, work) {
  const waiting = [...items];
  const lane = async () => {
    for (let item = waiting.shift(); item; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

function chosen(defences, { only, file }) {
  const ids = only?.split(',');
  const unknown = ids?.filter((id) => !defences.some((defence) => defence.id === id)) ?? [];
  if (unknown.length > 0) throw new Problem(`no defence is called ${unknown.join(', ')}`);
  const found = defences.filter(({ id, table }) => (!ids || ids.includes(id)) && (!file || table === file));
  if (found.length === 0) throw new Problem(`no table is called ${file}`);
  return found;
}

/** Runs every test that the defences name as it is: gives what is wrong with them. */
async function runAsItIs(runner, defences) {
  const filters = new Map(); // by target
  for (const test of defences.flatMap(tests)) {
    const target = targetOf(test);
    filters.set(target, (filters.get(target) ?? new Set()).add(test));
  }
  const wrong = [];
  await inLanes(filters, async ([target, named]) => {
    const begun = Date.now();
    for (const test of named) {
      if (!runner.has(test)) wrong.push(`${test}: no test is called so`);
    }
    const { passed, failed, failure } = await runner.run([...named]);
    say(`as it is    ${target}: ${passed} passed in ${seconds(begun)}`);
    if (failed.length > 0) wrong.push(`${target}: ${failed.join(', ')} fails as it is`);
    else if (failure) wrong.push(`${target}: ${failure}`);
  });
  return wrong;
}

/** Runs a defence's tests with the defence off: gives how it was noticed, or why it was not. */
async function runWithout(runner, defence) {
  const seen = [];
  for (const test of tests(defence)) {
    const { failed, failure, hangs } = await runner.run([test], defence);
    if (failed.length > 0) return { noticed: failed[0] };
    if (hangs) return { noticed: `${test} hangs` };
    seen.push(`${test} ${failure ?? 'passes'}`);
  }
  return { unnoticed: seen.join('; ') };
}

async function judge(defences, all, targets) {
  const active = defences.filter(({ layer }) => !layer);
  const layers = defences.filter(({ layer }) => layer);
  const tree = makeTree(all);
  const wanted = [...new Set(active.flatMap(tests).map(targetOf))];
  say(`building ${wanted.join(', ')}`);
  const runner = new Runner(await buildTests(tree, wanted, targets));
  const wrong = await runAsItIs(runner, active);
  if (wrong.length > 0) throw new Problem(`the tests are not fit to notice anything:\n  ${wrong.join('\n  ')}`);

  const unnoticed = [];
  await inLanes(active, async (defence) => {
    const begun = Date.now();
    const result = await runWithout(runner, defence);
    say(`${result.noticed ? 'noticed   ' : 'UNNOTICED '}  ${defence.id} (${seconds(begun)}): ${result.noticed ?? result.unnoticed}`);
    if (result.unnoticed) unnoticed.push({ ...defence, seen: result.unnoticed });
  });

  if (layers.length > 0) say('\nsecond layers, which no test can miss:');
  for (const { id, file, layer } of layers) say(`  ${id} (${file}): ${layer}`);
  if (unnoticed.length > 0) say('\nunnoticed:');
  for (const { id, file, why, seen } of unnoticed) say(`  ${id}${why ? `, ${why}` : ''} (${file}): ${seen}`);
  say(`\n${active.length} defences, ${active.length - unnoticed.length} noticed, ${unnoticed.length} unnoticed`);
  return unnoticed.length === 0;
}

try {
  const { values } = parseArgs({ options: { only: { type: 'string' }, file: { type: 'string' }, check: { type: 'boolean' } } });
  const all = await readTables();
  const targets = cargoTargets();
  const mistakes = mistakesIn(all, targets);
  if (mistakes.length > 0) throw new Problem(`the tables of defences do not fit:\n  ${mistakes.join('\n  ')}`);
  if (values.check) say(`${all.length} defences, each at its place`);
  else if (!(await judge(chosen(all, values), all, targets))) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`${error instanceof Problem ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
