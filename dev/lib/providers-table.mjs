// The tables of docs/providers.md, generated from the results of the provider suite.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { wrapped } from './wrap.mjs';

const PAGE = join(ROOT, 'docs/providers.md');
const BEGIN = '<!-- tables: made by `make providers` -->';
const END = '<!-- /tables -->';

/** Kinds of runs in the order of their tables, with the text above each. */
const CAPTIONS = {
  Provider: 'Providers:',
  Application: 'Applications, behind the edge itself and behind proxies that ask it, as [integrations](integrations/README.md) and its page of [applications](integrations/applications.md) have them (signing in and out, pages, forms, names of users, a WebSocket):',
};

const cell = (result) => {
  if (!result) return 'did not run';
  if (result.status === 'fails') return `fails${result.fault ? `, ${result.fault}` : ''}`;
  return result.status;
};

function table(head, columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const notes = rows.flatMap(({ name, results }) => Object.entries(columns).filter(([key]) => results[key]?.says).map(([key, title]) => `- ${name}, ${title}: ${results[key].says}`));
  const text = [line([head, ...Object.values(columns)]), line(Array(Object.keys(columns).length + 1).fill('---')), ...rows.map(({ name, version, results }) => line([`${name} ${version}`, ...Object.keys(columns).map((key) => cell(results[key]))]))];
  return [...text, '', ...notes, ...(notes.length > 0 ? [''] : [])].join('\n');
}

/** The tables of the results in `folder`: one file each, `{kind, name, version, columns, results}`. */
export function tables(folder) {
  const runs = existsSync(folder) ? readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8'))).sort((a, b) => a.name.localeCompare(b.name)) : [];
  const of = (kind) => runs.filter((run) => run.kind === kind);
  return Object.entries(CAPTIONS).filter(([kind]) => of(kind).length > 0).map(([kind, caption]) => `${caption}\n\n${table(kind, of(kind)[0].columns, of(kind))}`).join('\n');
}

/** Compares the page with the results of a run and writes it on request; returns whether they were equal. */
export function tablesAreCurrent(folder, { write = false } = {}) {
  const text = readFileSync(PAGE, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/providers.md needs the lines ${BEGIN} and ${END}`);
  const made = `${text.slice(0, begin)}${BEGIN}\n\n${wrapped(tables(folder))}\n${text.slice(end)}`;
  if (made === text) return true;
  if (write) writeFileSync(PAGE, made);
  return false;
}
