// `make defences`: takes every defence out, one at a time, and wants a test to notice.
//
//   node dev/defences.mjs                    everything; takes a night on two cores
//   node dev/defences.mjs --table            the tables alone, half an hour
//   node dev/defences.mjs --table --only id,id     some rows
//   node dev/defences.mjs --mutants --file auth-edge/src/values/path.rs   the mutants of one source, minutes
//   node dev/defences.mjs --mutants --in-diff change.patch                those that a change touches
//   node dev/defences.mjs --check            only whether the tables fit the sources; builds nothing
//
// cargo-mutants changes operators, arms and whole functions of the modules that .cargo/mutants.toml names. What it cannot make (a call
// left out, another text, a limit that is none, a seal bound to less) the tables in dev/defences hold. For these a copy of the tree is
// built once with a switch in every row; the variable DEFENCE_OFF holds the id of the one that is off. The tests of the chosen rows run
// without it first and have to pass, then those of each row with it, and one has to fail. The last line is "N defences, N noticed, N
// unnoticed".
import { parseArgs } from 'node:util';

import { runMutants } from './defences/lib/mutants.mjs';
import { filterOf, mistakesIn, packageOf, readTables, workspacePackages } from './defences/lib/table.mjs';
import { buildTests, programsOf, runTests } from './defences/lib/tests.mjs';
import { makeTree } from './defences/lib/tree.mjs';
import { Problem } from './lib/build.mjs';

const LANES = 2; // tests have threads of their own
const OPTIONS = {
  check: { type: 'boolean' }, table: { type: 'boolean' }, only: { type: 'string' },
  mutants: { type: 'boolean' }, file: { type: 'string' }, 'in-diff': { type: 'string' },
};
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

function chosen(defences, only) {
  const ids = only?.split(',');
  const unknown = ids?.filter((id) => !defences.some((defence) => defence.id === id)) ?? [];
  if (unknown.length > 0) throw new Problem(`no defence is called ${unknown.join(', ')}`);
  return defences.filter(({ id }) => !ids || ids.includes(id));
}

/** Runs every test that the defences name as it is: gives what is wrong with them. */
async function runAsItIs(programs, defences) {
  const wrong = [];
  const filters = new Map(); // by program
  for (const test of new Set(defences.flatMap(({ tests }) => tests))) {
    const found = programsOf(test, programs);
    if (found.length === 0) wrong.push(`${test}: no test is called so`);
    for (const program of found) filters.set(program, [...filters.get(program) ?? [], filterOf(test)]);
  }
  await inLanes(filters, async ([program, named]) => {
    const begun = Date.now();
    const { passed, failed, failure } = await runTests(program, named);
    say(`as it is    ${program.program}: ${passed} passed in ${seconds(begun)}`);
    if (failed.length > 0) wrong.push(`${failed.join(', ')} fails as it is`);
    else if (failure) wrong.push(`${program.program}: ${failure}`);
  });
  return wrong;
}

/** Runs a defence's tests with the defence off: gives how it was noticed, or why it was not. */
async function runWithout(programs, defence) {
  const seen = [];
  for (const test of defence.tests) {
    for (const program of programsOf(test, programs)) {
      const { failed, failure, hangs } = await runTests(program, [filterOf(test)], defence);
      if (failed.length > 0) return { noticed: failed[0] };
      if (hangs) return { noticed: `${test} hangs` };
      seen.push(`${test} ${failure ?? 'passes'}`);
    }
  }
  return { unnoticed: seen.join('; ') };
}

/** Judges the rows `defences` of the tables `all`. Whether each was noticed. */
async function judge(defences, all, folders) {
  const wanted = [...new Set(defences.flatMap(({ tests }) => tests).map(packageOf))];
  say(`building the tests of ${wanted.join(', ')}`);
  const programs = await buildTests(makeTree(all), wanted, folders);
  const wrong = await runAsItIs(programs, defences);
  if (wrong.length > 0) throw new Problem(`the tests are not fit to notice anything:\n  ${wrong.join('\n  ')}`);
  const unnoticed = [];
  await inLanes(defences, async (defence) => {
    const begun = Date.now();
    const result = await runWithout(programs, defence);
    say(`${result.noticed ? 'noticed   ' : 'UNNOTICED '}  ${defence.id} (${seconds(begun)}): ${result.noticed ?? result.unnoticed}`);
    if (result.unnoticed) unnoticed.push({ ...defence, seen: result.unnoticed });
  });
  if (unnoticed.length > 0) say('\nunnoticed:');
  for (const { id, file, seen } of unnoticed) say(`  ${id} (${file}): ${seen}`);
  say(`\n${defences.length} defences, ${defences.length - unnoticed.length} noticed, ${unnoticed.length} unnoticed`);
  return unnoticed.length === 0;
}

try {
  const { values } = parseArgs({ options: OPTIONS });
  const [all, folders] = [await readTables(), workspacePackages()];
  const mistakes = mistakesIn(all, folders);
  if (mistakes.length > 0) throw new Problem(`the tables of defences do not fit:\n  ${mistakes.join('\n  ')}`);
  const both = !values.table && !values.mutants;
  if (values.check) {
    say(`${all.length} defences, each at its place`);
  } else {
    const caught = !(values.mutants || both) || await runMutants({ file: values.file, diff: values['in-diff'] }, folders, say);
    const noticed = !(values.table || both) || await judge(chosen(all, values.only), all, folders);
    if (!caught || !noticed) process.exitCode = 1;
  }
} catch (error) {
  process.stderr.write(`${error instanceof Problem ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
