// What the specifications and the OpenID Foundation's test plans require of a client, and the tests that show it.
//
//   node dev/conformance.mjs           prints the table as Markdown.
//   node dev/conformance.mjs --check   prints mistakes only.
//
// dev/conformance.json lists the requirements. Each needs a test or a reason, and a test may only name listed ones.
// A test names its requirements in a comment right above it: "// conformance: A-010 B-083".
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { endOnErrors } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const HEAD = `# Conformance of the relying party

Part A lists the modules of the OpenID Foundation's relying-party and FAPI 2.0 test plans, part B the requirements of their specifications.
ACCEPT and REJECT say how the client has to treat what the provider sends. Each test runs against a provider that misbehaves in exactly
that way and counts every call, or against a real one.
`;

/** Every test with the lines it names: {line → [{file, name}]}. */
function namedByTests() {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', '*.rs', '*.mjs'], { cwd: ROOT, encoding: 'utf8' });
  const found = new Map();
  for (const file of files.trim().split('\n').filter((name) => existsSync(join(ROOT, name)) && name !== 'dev/conformance.mjs')) {
    const lines = readFileSync(join(ROOT, file), 'utf8').split('\n');
    lines.forEach((line, at) => {
      const named = /^\s*\/\/ conformance: (.*)$/.exec(line);
      if (!named) return;
      const name = nameOf(lines.slice(at + 1, at + 8));
      if (!name) throw new Error(`${file}:${at + 1}: no test follows the comment`);
      for (const id of named[1].trim().split(/\s+/)) found.set(id, [...(found.get(id) ?? []), { file, name }]);
    });
  }
  return found;
}

function nameOf(lines) {
  for (const line of lines) {
    const name = /^\s*(?:pub )?(?:async )?fn ([a-z0-9_]+)/.exec(line)?.[1] ?? /^\s*test\((['"`])(.*?)\1/.exec(line)?.[2];
    if (name) return name;
    if (!/^\s*(#\[|\/\/)/.test(line)) return undefined;
  }
  return undefined;
}

const cell = (text) => text.replaceAll('|', '\\|');

function table(rows, tests) {
  const lines = rows.map(({ id, level, text, source, na, note }) => {
    const shown = na ? na : tests.get(id).map(({ file, name }) => `${basename(file)}: ${name.includes(' ') ? name : `\`${name}\``}`).join('<br>');
    const words = [text, note && `*${note}*`].filter(Boolean).join(' ');
    return `| ${id} | ${level} | ${cell(words)}${source ? ` <sub>${cell(source)}</sub>` : ''} | ${na ? 'not applicable' : 'pass'} | ${cell(shown)} |`;
  });
  return ['| Line | | Requirement | Verdict | Tests, or the reason |', '|---|---|---|---|---|', ...lines].join('\n');
}

function conformanceTable() {
  const rows = JSON.parse(readFileSync(join(ROOT, 'dev/conformance.json'), 'utf8'));
  const tests = namedByTests();
  const ids = new Set(rows.map(({ id }) => id));
  const mistakes = [
    ...[...tests].filter(([id]) => !ids.has(id)).map(([id, named]) => `${named[0].file} names ${id}, which is no line`),
    ...rows.filter(({ id, na }) => !na && !tests.has(id)).map(({ id, text }) => `${id} has no test and no reason: ${text}`),
    ...rows.filter(({ id, na }) => na && tests.has(id)).map(({ id }) => `${id} has a test, and also a reason for having no test`),
  ];
  if (mistakes.length > 0) throw new Error(`conformance:\n  ${mistakes.join('\n  ')}`);
  const groups = [...new Set(rows.map(({ group }) => group))];
  const parts = groups.map((group) => `## ${group}\n\n${table(rows.filter((row) => row.group === group), tests)}\n`);
  const applying = rows.filter(({ na }) => !na).length;
  const count = `${rows.length} lines: ${applying} pass, ${rows.length - applying} do not apply.\n`;
  return `${HEAD}\n${count}\n${parts.join('\n')}`;
}

endOnErrors();
const text = conformanceTable();
if (!process.argv.includes('--check')) process.stdout.write(text);
