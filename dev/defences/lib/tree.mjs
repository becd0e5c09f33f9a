// A copy of the tree with a switch in every defence. What has not changed since the last copy keeps its time, so that cargo builds
// it no second time.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { ROOT } from '../../stack.mjs';
import { Problem } from '../../lib/build.mjs';
import { spanOf } from './table.mjs';

/** Where everything of this command lies. */
export const PLACE = join(resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target'), 'defences');

/** The variable that names the defence that is off. */
export const SWITCH = 'DEFENCE_OFF';

// Tests that start a program do it with a clean environment; the switch has to get through.
const CLEAN = '.env_clear()';
const CLEAN_BUT_SWITCHED = `${CLEAN}.envs(std::env::var_os("${SWITCH}").map(|off| ("${SWITCH}", off)))`;

// A switch stands in parentheses, whether it needs them there or not.
const LINTS = '[workspace.lints.rust]\n';

/** Writes the copy; gives its folder. */
export function makeTree(defences) {
  const tree = join(PLACE, 'tree');
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 });
  const names = new Set(listed.split('\0').filter((name) => name && existsSync(join(ROOT, name))));
  const switched = byFile(defences.flatMap(({ places }) => places));
  for (const name of names) {
    const from = join(ROOT, name);
    if (statSync(from).isDirectory()) continue; // a repository of its own
    put(join(tree, name), contentOf(name, readFileSync(from), switched.get(name)), statSync(from).mode);
  }
  prune(tree, '', names);
  return tree;
}

function byFile(all) {
  const files = new Map();
  for (const place of all) files.set(place.file, [...(files.get(place.file) ?? []), place]);
  return files;
}

function contentOf(name, content, switches) {
  if (name === 'Cargo.toml') return Buffer.from(content.toString().replace(LINTS, `${LINTS}unused_parens = "allow"\n`));
  if (switches) return Buffer.from(withSwitches(content.toString(), switches));
  if (/\/tests\/.*\.rs$/.test(name)) return Buffer.from(content.toString().replaceAll(CLEAN, CLEAN_BUT_SWITCHED));
  return content;
}

/** A source with its switches. */
function withSwitches(source, switches) {
  const found = switches
    .map((place) => ({ ...place, ...spanOf(place, source) }))
    .sort((one, other) => one.from - other.from);
  let [switched, at] = ['', 0];
  for (const { id, from, to, replace } of found) {
    if (from < at) throw new Problem(`${id} switches what another row switches too`);
    const off = `std::env::var_os("${SWITCH}").is_some_and(|off| off == "${id}")`;
    switched += source.slice(at, from) + replace.replaceAll(/\bOFF\b/g, () => off);
    at = to;
  }
  return switched + source.slice(at);
}

function put(path, content, mode) {
  if (existsSync(path) && readFileSync(path).equals(content)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode });
}

/** Takes away what the tree does not hold any more, and what tests have left. */
function prune(tree, folder, names) {
  for (const entry of readdirSync(join(tree, folder), { withFileTypes: true })) {
    const name = folder ? `${folder}/${entry.name}` : entry.name;
    if (entry.isDirectory()) prune(tree, name, names);
    else if (!names.has(name)) rmSync(join(tree, name));
  }
}
