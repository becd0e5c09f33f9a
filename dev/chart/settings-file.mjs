// The names and kinds of all settings for the chart's templates, from the tables in docs/settings.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { stringify } from 'yaml';

import { Problem } from '../lib/build.mjs';
import { ROOT } from '../stack.mjs';

const ROW = /^\| (`[A-Z][^|]*`) \| `--[a-z0-9-]+ ([^`]+)` \|(.*)$/gm;
const whole = (unit, example) => ({ pattern: '^[0-9]+$', write: `a whole number of ${unit}, such as "${example}"` });

/** The format of the values of each kind. A kind that allows any text has no entry. */
const KINDS = {
  SECONDS: whole('seconds', 30),
  MS: whole('milliseconds', 500),
  MILLISECONDS: whole('milliseconds', 500),
  BYTES: whole('bytes', 65536),
  'BYTES/S': whole('bytes a second', 500),
  COUNT: { pattern: '^[0-9]+$', write: 'a whole number, such as "2"' },
  PERCENT: { pattern: '^[0-9]{1,3}$', write: 'a percentage without the sign, such as "25"' },
  BOOL: { pattern: '^(true|false|1|0|yes|no|on|off)$', write: '"true" or "false"' },
  URL: { pattern: '^[a-z][a-z0-9+.-]*:\\S*$', write: 'an address with its scheme, such as "https://idp.example.com"' },
  ADDRESS: { pattern: '^(off|\\S+:[0-9]+)$', write: 'an address with a port, such as "0.0.0.0:3000"' },
};
const CHOICES = /One of: ([a-z0-9_+-]+(?:, [a-z0-9_+-]+)+)\./;
const WORDS = /^[a-z0-9_+-]+(\|[a-z0-9_+-]+)+$/;

function rows(text) {
  return Object.fromEntries([...text.matchAll(ROW)].flatMap(([, names, kind, rest]) => {
    const [name, file] = [...names.matchAll(/`(\w+)`/g)].map(([, found]) => found);
    const plain = CHOICES.exec(rest)?.[1].replaceAll(', ', '|') ?? kind;
    return file && name !== 'HTTPS_PROXY' ? [[name, 'SECRET'], [file, 'FILE']] : [[name, plain], ...(file ? [[file, 'FILE']] : [])];
  }));
}

/** YAML with `kinds` (pattern and what to write) and `settings` (program, name, kind). */
export function settingsFile() {
  const [edge, service] = readFileSync(join(ROOT, 'docs/settings.md'), 'utf8').split('\n## session-svc\n');
  const settings = { 'auth-edge': rows(edge), 'session-svc': rows(service ?? '') };
  for (const [program, found] of Object.entries(settings)) if (Object.keys(found).length === 0) throw new Problem(`docs/settings.md has no settings of ${program}`);
  const words = new Set(Object.values(settings).flatMap((found) => Object.values(found)).filter((kind) => WORDS.test(kind)));
  const choices = Object.fromEntries([...words].map((kind) => [kind, { pattern: `^(${kind.replaceAll('+', '\\+')})$`, write: kind.split('|').map((word) => `"${word}"`).join(' or ') }]));
  return stringify({ kinds: { ...KINDS, ...choices }, settings }, { lineWidth: 0 });
}
