// The table of values in docs/kubernetes/helm.md: what the schema says of each, and what values.yaml has.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { ROOT } from '../stack.mjs';

const PAGE = join(ROOT, 'docs/kubernetes/helm.md');
const BEGIN = '<!-- values: made by `make gen` -->';
const END = '<!-- /values -->';
const LONGEST = 40; // a longer default is read in values.yaml

function shown(value) {
  const text = JSON.stringify(value);
  if (text === undefined || text === '""') return '';
  return text.length > LONGEST ? 'see values.yaml' : `\`${text.replace(/^"(.*)"$/, '$1')}\``;
}

function rows(schema, definitions, values, path) {
  return Object.entries(schema.properties).flatMap(([name, field]) => {
    const [where, value] = [[...path, name], values?.[name]];
    const part = field.$ref?.endsWith('/image') ? { ...definitions.image, description: field.description } : field;
    const own = part.description && name !== 'global' ? [`| \`${where.join('.')}\` | ${shown(part.properties ? undefined : value)} | ${part.description} |`] : [];
    return part.properties ? [...own, ...rows(part, definitions, value, where)] : own;
  });
}

export function writeValuesTable() {
  const read = (name) => readFileSync(join(ROOT, 'k8s/chart', name), 'utf8');
  const schema = JSON.parse(read('values.schema.json'));
  const table = ['| Value | Default | |', '|---|---|---|', ...rows(schema, schema.$defs, parse(read('values.yaml')), [])].join('\n');
  const page = readFileSync(PAGE, 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${PAGE} needs the lines ${BEGIN} and ${END}`);
  writeFileSync(PAGE, `${page.slice(0, begin)}${BEGIN}\n\n${table}\n\n${page.slice(end)}`);
}
