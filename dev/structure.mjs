// The structure of the crates: rooms (a crate's outermost modules) and their imports of each other.
//
//   node dev/structure.mjs           prints figures of lines, files, items, arrows and circles.
//   node dev/structure.mjs --check   fails on a difference from dev/rooms.txt, on a circle of rooms or of
//                                    more than three files, and on errors in records without causes.
//   node dev/structure.mjs --write   writes dev/rooms.txt, where reviewers see new arrows.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

import { ROOT } from './stack.mjs';

const CRATES = ['auth-edge', 'session-svc', 'crates/chassis', 'crates/oidc', 'crates/provider-settings', 'crates/ssf', 'crates/vestibule', 'proto'];
const PROGRAMS = ['auth-edge', 'session-svc', 'vestibule'];
const ROOMS = join(ROOT, 'dev/rooms.txt');
const FILES_IN_CIRCLE_MAX = 3; // a reader has to read the files of a circle together

/** Raw strings, strings, characters and comments: the first to begin. */
const TEXTS = /r(#*)"[^]*?"\1|"(?:[^"\\]|\\[^])*"|'(?:[^'\\\n]|\\[^'\n]+|\\')'|\/\/.*|\/\*[^]*?\*\//g;

const sources = (folder) => readdirSync(folder).sort().flatMap((name) => {
  const path = join(folder, name);
  if (statSync(path).isDirectory()) return name === 'gen' ? [] : sources(path);
  return path.endsWith('.rs') ? [path] : [];
});

const isTest = (path) => /(^|\/|_)tests?(\.rs|\/)/.test(path);

/** A file's code without comments, strings and the tests at its end. */
function code(path) {
  const text = readFileSync(path, 'utf8').split(/\n#\[cfg\(test\)\]\nmod \w+ \{/)[0];
  return text.replace(TEXTS, (found) => (found.startsWith('/') ? '' : '""'));
}

/** `%error` in a record's macro: it writes no causes, unlike `error = &error as &dyn Error`. */
const OUTERMOST_WORDS = /(?<=[(,{\s])%&?(?:\w+\.)*(?:error|err|cause)\b/g;

/** The lines of a crate with such errors. */
function withoutCauses(crate) {
  return sources(join(ROOT, crate, 'src')).filter((path) => !isTest(path)).flatMap((path) => {
    const text = code(path);
    return [...text.matchAll(OUTERMOST_WORDS)].map(({ index }) => `${relative(ROOT, path)}:${text.slice(0, index).split('\n').length}`);
  });
}

/** The paths in a module's code from crate, self or super, as names from the crate's root, with braces expanded. */
function paths(text, module) {
  const found = [];
  for (const { index, 0: start } of text.matchAll(/(?<![\w:])(?:crate::|self::|(?:super::)+)/g)) {
    let at = start === 'crate::' ? [] : module.slice(0, module.length - start.split('super').length + 1);
    const open = [];
    for (const [token] of text.slice(index + start.length).matchAll(/\w+|::|\s+|./g)) {
      if (token === '::' || (open.length > 0 && token.trim() === '')) continue;
      if (token === '{') open.push(at);
      else if (/^\w/.test(token)) at = [...at, token];
      else if (open.length > 0 && /[,}]/.test(token)) {
        found.push(at);
        at = token === ',' ? open.at(-1) : open.pop();
      } else break;
    }
    found.push(at);
  }
  return found;
}

/** A crate's files by module, each with the modules it uses. A re-export is no arrow: its users use the module. */
function knowledge(crate) {
  const folder = join(ROOT, crate, 'src');
  const names = sources(folder).map((path) => relative(folder, path)).filter((path) => !isTest(path) && path !== 'main.rs');
  const files = new Map(names.map((name) => [name.replace(/\/?\b(?:mod|lib)?\.rs$/, '').replaceAll('/', '::'), code(join(folder, name))]));
  const uses = new Map([...files].map(([module, text]) => {
    const children = [...files.keys()].filter((name) => name.replace(/(?:^|::)\w+$/, '') === module).map((name) => name.split('::').at(-1));
    const whole = text.replace(new RegExp(`\\buse (?=(?:${children.join('|')})::)`, 'g'), 'use self::');
    const from = module.split('::').filter(Boolean);
    const named = paths(whole.match(/\buse [^;]+;/g)?.join('\n') ?? '', from).map((path) => [path.at(-1), path]);
    return [module, { named: new Map(named), known: paths(whole.replace(/\bpub(?:\([^)]*\))? use [^;]+;/g, ''), from) }];
  }));
  const moduleOf = (path, hops = 4) => {
    const length = path.findLastIndex((_, at) => uses.has(path.slice(0, at + 1).join('::'))) + 1;
    const module = path.slice(0, length).join('::');
    const renamed = hops > 0 && uses.get(module).named.get(path[length]);
    return renamed ? moduleOf([...renamed, ...path.slice(length + 1)], hops - 1) : module;
  };
  return new Map([...uses].map(([module, { known }]) => [module, new Set(known.map((path) => moduleOf(path)).filter((other) => other !== module && other !== ''))]));
}

/** Rooms of a crate, each with the rooms it uses. */
function arrows(crate) {
  const rooms = new Map();
  for (const [module, known] of knowledge(crate)) {
    const [room] = module.split('::');
    if (room) rooms.set(room, new Set([...rooms.get(room) ?? [], ...[...known].map((other) => other.split('::')[0]).filter((other) => other !== room)]));
  }
  return rooms;
}

/** The circles of a graph, each as a list of rooms. */
function circles(rooms) {
  const reaches = (from) => {
    const seen = new Set();
    const next = [...rooms.get(from).keys()];
    while (next.length > 0) {
      const room = next.pop();
      if (!seen.has(room)) {
        seen.add(room);
        next.push(...rooms.get(room)?.keys() ?? []);
      }
    }
    return seen;
  };
  const all = new Map([...rooms.keys()].map((room) => [room, reaches(room)]));
  const found = new Map();
  for (const [room, seen] of all) {
    if (!seen.has(room)) continue;
    const circle = [...seen].filter((other) => all.get(other)?.has(room)).sort();
    found.set(circle.join(' '), circle);
  }
  return [...found.values()];
}

/** One line for each room of a crate: the rooms it uses. */
const lines = (crate, rooms) => [...rooms].map(([room, known]) => [`${crate}: ${room} -->`, ...[...known.keys()].sort()].join(' ')).sort();

/** The text of dev/rooms.txt for the current sources. */
function roomsText() {
  const head = '# The rooms of each crate and the rooms they use. `node dev/structure.mjs --write` writes it, `make lint` compares it.';
  return `${[head, ...CRATES.flatMap((crate) => lines(crate, arrows(crate)))].join('\n')}\n`;
}

function check() {
  const wrong = [];
  for (const crate of CRATES) {
    for (const place of withoutCauses(crate)) wrong.push(`${place}: %error loses the causes: write error = &error as &dyn std::error::Error`);
    for (const circle of circles(arrows(crate))) wrong.push(`${crate}: a circle of ${circle.join(', ')}`);
    for (const circle of circles(knowledge(crate))) if (circle.length > FILES_IN_CIRCLE_MAX) wrong.push(`${crate}: files in a circle: ${circle.join(', ')}`);
  }
  const [written, present] = [readFileSync(ROOMS, 'utf8'), roomsText()].map((text) => text.split('\n'));
  wrong.push(...written.filter((line) => !present.includes(line)).map((line) => `dev/rooms.txt has: ${line}`));
  wrong.push(...present.filter((line) => !written.includes(line)).map((line) => `the sources have: ${line}`));
  for (const line of wrong) process.stderr.write(`${line}\n`);
  if (wrong.length > 0) process.stderr.write('If you want the arrow, run: node dev/structure.mjs --write\n');
  else process.stdout.write(`${CRATES.length} crates, every arrow is in dev/rooms.txt, no circle, no record without an error's causes\n`);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}

/** Lines of each function with a body. */
function functions(text) {
  const lengths = [];
  for (const { index } of text.matchAll(/\bfn \w+/g)) {
    let braces = 0;
    for (let at = index; at < text.length; at += 1) {
      if (braces === 0 && text[at] === ';') break; // of a trait, without a body
      if (text[at] === '{') braces += 1;
      else if (text[at] === '}' && (braces -= 1) === 0) {
        lengths.push(text.slice(index, at).split('\n').length);
        break;
      }
    }
  }
  return lengths.sort((one, other) => one - other);
}

function figures() {
  const rows = CRATES.map((crate) => {
    const folder = join(ROOT, crate, 'src');
    const files = sources(folder).filter((path) => !isTest(relative(folder, path)));
    const lengths = files.map((path) => code(path).split('\n').length).sort((one, other) => one - other);
    const texts = files.map(code).join('\n');
    const count = (pattern) => texts.match(pattern)?.length ?? 0;
    const rooms = arrows(crate);
    const bodies = functions(texts);
    return {
      crate,
      lines: texts.split('\n').filter((line) => line.trim() !== '').length,
      files: files.length,
      'median file': lengths[lengths.length >> 1],
      'largest file': lengths.at(-1),
      'median function': bodies[bodies.length >> 1],
      'largest function': bodies.at(-1),
      public: count(/^\s*pub (?:const |async |unsafe )*(?:fn|struct|enum|trait|type|const|static|mod|use)\b/gm),
      'pub(crate)': count(/^\s*pub\((?:crate|super|in [\w:]+)\) (?:const |async )*(?:fn|struct|enum|trait|type|const|static|mod|use)\b/gm),
      rooms: rooms.size,
      arrows: [...rooms.values()].reduce((sum, known) => sum + known.size, 0),
      circles: circles(rooms).length,
    };
  });
  process.stdout.write(`| ${Object.keys(rows[0]).join(' | ')} |\n|${'---|'.repeat(Object.keys(rows[0]).length)}\n`);
  for (const row of rows) process.stdout.write(`| ${Object.values(row).join(' | ')} |\n`);
  process.stdout.write(`\nlines of production code: ${rows.reduce((sum, { lines }) => sum + lines, 0)}\n`);
  for (const program of PROGRAMS) {
    const tree = execFileSync('cargo', ['tree', '--locked', '--package', program, '--edges', 'normal', '--prefix', 'none', '--format', '{p}'], { cwd: ROOT, encoding: 'utf8' });
    process.stdout.write(`crates in ${program}: ${new Set(tree.trim().split('\n').map((line) => line.replace(' (*)', ''))).size}\n`);
  }
  const settings = readFileSync(join(ROOT, 'docs/settings.md'), 'utf8').match(/^\| `(\w+)`/gm);
  process.stdout.write(`settings: ${new Set(settings).size}\n`);
}

if (process.argv.includes('--check')) check();
else if (process.argv.includes('--write')) writeFileSync(ROOMS, roomsText());
else figures();
