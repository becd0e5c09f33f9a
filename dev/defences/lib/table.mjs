// The tables of defences, dev/defences/*.mjs. Each exports a list of
//
//   {
//     id: 'double-encoded-path',
//     why: 'a line that says against what, where the id does not',            // may be left out
//     file: 'auth-edge/src/values/path.rs',
//     find: `the source as it is; it occurs once in the file`,
//     replace: `the same with the condition OFF in it, such as  if !OFF && depth > MAX {`,
//     tests: ['auth-edge/lib values::path::', 'auth-edge/product desync::'],  // package/target and a part of the tests' names
//   }
//
// OFF becomes an expression that is true while the defence is off. `also`, a list of {file, find, replace}, holds further places of the
// same switch, where one of two would defend as well. Where a defence stands behind another one on purpose, so that no
// test can miss it, `layer` names the first one instead of `replace` and `tests`: it is listed and not run.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

import { ROOT } from '../../stack.mjs';

const TABLES = join(ROOT, 'dev/defences');
const FIELDS = ['id', 'why', 'file', 'find', 'replace', 'also', 'tests', 'layer', 'table'];

/** Every defence, with the name of its table. */
export async function readTables() {
  const files = readdirSync(TABLES).filter((name) => name.endsWith('.mjs')).sort();
  const tables = await Promise.all(files.map((name) => import(pathToFileURL(join(TABLES, name)))));
  return tables.flatMap(({ default: defences }, at) => defences.map((defence) => ({ ...defence, table: basename(files[at], '.mjs') })));
}

/** The tests of a defence: `package/target filter`. */
export const tests = ({ tests: named = [] }) => named;

/** The places of a defence in the sources: {id, file, find, replace}. */
export const places = ({ id, file, find, replace, also = [] }) => [{ file, find, replace }, ...also].map((place) => ({ id, ...place }));

/** `package/target` of a test. */
export const targetOf = (test) => test.split(' ', 1)[0];

/** The part of the names that a test asks for; empty for all. */
export const filterOf = (test) => test.slice(targetOf(test).length).trim();

/** Test targets of the workspace: `package/lib` or `package/NAME` → the package's folder. Builds nothing. */
export function cargoTargets() {
  const asked = ['metadata', '--no-deps', '--offline', '--locked', '--format-version', '1'];
  const { packages } = JSON.parse(execFileSync('cargo', asked, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 }));
  const targets = new Map();
  for (const { name, manifest_path: manifest, targets: own } of packages) {
    const folder = relative(ROOT, dirname(manifest));
    for (const { name: target, kind } of own) {
      if (kind.includes('lib')) targets.set(`${name}/lib`, folder);
      if (kind.includes('test')) targets.set(`${name}/${target}`, folder);
    }
  }
  return targets;
}

/** How often a text occurs in another. */
export const occurrences = (text, part) => text.split(part).length - 1;

/** Everything that does not fit, in words. */
export function mistakesIn(defences, targets) {
  const ids = new Set();
  const sources = new Map(); // of packages, all in one text
  const found = defences.flatMap((defence) => {
    const { id, table } = defence;
    const twice = ids.has(id);
    ids.add(id);
    const wrong = twice ? ['its id is there twice'] : [...ofFields(defence), ...places(defence).flatMap(ofPlace), ...ofTests(defence, targets, sources)];
    return wrong.map((text) => `${table}: ${id}: ${text}`);
  });
  return found.length > 0 ? found : overlapping(defences);
}

/** Defences of which two would switch the same text. */
function overlapping(defences) {
  const all = defences.flatMap(places).map(({ id, file, find }) => {
    const from = readFileSync(join(ROOT, file), 'utf8').indexOf(find);
    return { id, file, from, to: from + find.length };
  });
  const clash = (one, other) => one.file === other.file && one.from <= other.from && other.from < one.to;
  return all.flatMap((one) => all.filter((other) => other !== one && clash(one, other)).map((other) => `${one.id} and ${other.id} switch the same text of ${one.file}`));
}

function ofFields(defence) {
  const { id, layer } = defence;
  const wrong = Object.keys(defence).filter((name) => !FIELDS.includes(name)).map((name) => `has no field ${name}`);
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id)) wrong.push('an id is words in lower case, joined by hyphens');
  if (layer) return wrong;
  if (!places(defence).some(({ replace }) => /\bOFF\b/.test(replace ?? ''))) wrong.push('nothing it puts in has an OFF');
  if (tests(defence).length === 0) wrong.push('it has no tests');
  return wrong;
}

function ofPlace({ file, find }) {
  const path = join(ROOT, file ?? '');
  if (!file?.endsWith('.rs') || !existsSync(path)) return [`there is no Rust source ${file}`];
  const count = find ? occurrences(readFileSync(path, 'utf8'), find) : 0;
  return count === 1 ? [] : [`what it switches occurs ${count} times in ${file}, not once`];
}

/** Whether the target is there, and every word of the filter is a word of the package. */
function ofTests(defence, targets, sources) {
  return tests(defence).flatMap((test) => {
    const folder = targets.get(targetOf(test));
    if (folder === undefined) return [`there are no tests ${targetOf(test)}`];
    if (!sources.has(folder)) sources.set(folder, sourcesOf(folder));
    const words = filterOf(test).split('::').filter((word) => word && !sources.get(folder).includes(word));
    return words.map((word) => `${test}: nothing in ${folder} is called ${word}`);
  });
}

function sourcesOf(folder) {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', `${folder}/*.rs`], { cwd: ROOT, encoding: 'utf8' });
  const files = listed.trim().split('\n').filter((name) => existsSync(join(ROOT, name)));
  return files.map((name) => `${name}\n${readFileSync(join(ROOT, name), 'utf8')}`).join('\n');
}
