// The tables of defences, dev/defences/*.mjs: lists of {id, file, tests, places}, written with rows.mjs. A test is `package filter`; the
// filter is a part of the names of tests, wherever in the package they are.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

import { ROOT } from '../../stack.mjs';

const TABLES = join(ROOT, 'dev/defences');
const TESTS_BEGIN = '\n#[cfg(test)]\nmod ';

/** Every defence, with the name of its table. */
export async function readTables() {
  const files = readdirSync(TABLES).filter((name) => name.endsWith('.mjs')).sort();
  const tables = await Promise.all(files.map((name) => import(pathToFileURL(join(TABLES, name)))));
  return tables.flatMap(({ default: defences }, at) => defences.map((defence) => ({ ...defence, table: basename(files[at], '.mjs') })));
}

/** The package of a test. */
export const packageOf = (test) => test.split(' ', 1)[0];

/** The part of the names that a test asks for; empty for all. */
export const filterOf = (test) => test.slice(packageOf(test).length).trim();

/** Packages of the workspace, each with its folder. Builds nothing. */
export function workspacePackages() {
  const asked = ['metadata', '--no-deps', '--locked', '--format-version', '1'];
  const { packages } = JSON.parse(execFileSync('cargo', asked, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 }));
  return new Map(packages.map(({ name, manifest_path: manifest }) => [name, relative(ROOT, dirname(manifest))]));
}

/** Where in a source the text of a place begins and ends; nothing where it is not there exactly once before the file's tests. */
export function spanOf({ find }, source) {
  const code = source.split(TESTS_BEGIN)[0];
  const from = code.indexOf(find);
  return from < 0 || code.indexOf(find, from + 1) >= 0 ? undefined : { from, to: from + find.length };
}

/** Everything that does not fit, in words. */
export function mistakesIn(defences, packages) {
  const sources = new Map([...packages].map(([name, folder]) => [name, () => sourcesOf(folder)]));
  const words = (name) => {
    if (typeof sources.get(name) === 'function') sources.set(name, sources.get(name)());
    return sources.get(name);
  };
  const ids = new Set();
  return [...overlapsOf(defences), ...defences.flatMap(({ id, table, tests, places }) => {
    const twice = ids.has(id) ? ['its id is there twice'] : [];
    ids.add(id);
    return [...twice, ...places.flatMap(ofPlace), ...tests.flatMap((test) => ofTest(test, words))].map((wrong) => `${table}: ${id}: ${wrong}`);
  })];
}

/** Rows that would switch the same text: one copy of the tree has the switches of all. */
function overlapsOf(defences) {
  const spans = defences.flatMap(({ id, table, places }) => places
    .filter(({ file }) => existsSync(join(ROOT, file)))
    .map((place) => ({ id, table, file: place.file, ...spanOf(place, readFileSync(join(ROOT, place.file), 'utf8')) })))
    .sort((one, other) => (one.file === other.file ? one.from - other.from : one.file < other.file ? -1 : 1));
  return spans.slice(1).flatMap((span, at) => {
    const before = spans[at];
    return before.file === span.file && span.from < before.to ? [`${span.table}: ${span.id}: switches what ${before.id} switches too`] : [];
  });
}

function ofPlace(place) {
  const { file, find, replace } = place;
  if (!existsSync(join(ROOT, file))) return [`there is no ${file}`];
  if (!/\bOFF\b/.test(replace)) return ['what it puts in has no OFF'];
  return spanOf(place, readFileSync(join(ROOT, file), 'utf8')) ? [] : [`not once in ${file}: ${find}`];
}

/** Whether the package is there, and every word of the filter is a word of it. */
function ofTest(test, words) {
  const text = words(packageOf(test));
  if (text === undefined) return [`there is no package ${packageOf(test)}`];
  return filterOf(test).split('::').filter((word) => word && !text.includes(word)).map((word) => `${test}: nothing is called ${word}`);
}

function sourcesOf(folder) {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', `${folder}/*.rs`], { cwd: ROOT, encoding: 'utf8' });
  const files = listed.trim().split('\n').filter((name) => existsSync(join(ROOT, name)));
  return files.map((name) => `${name}\n${readFileSync(join(ROOT, name), 'utf8')}`).join('\n');
}
