// The index of the runbooks: every alert, how urgent it is, and what people notice of it, which is how its page begins.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Problem } from '../lib/build.mjs';
import { ROOT } from '../stack.mjs';

function noticed(name) {
  const text = readFileSync(join(ROOT, 'docs/runbooks', `${name}.md`), 'utf8');
  const [, people] = /^# \w+\n\n\*\*People\*\* ([^\n]+)\n/.exec(text) ?? [];
  if (!people) throw new Problem(`docs/runbooks/${name}.md does not begin with what people notice`);
  return people;
}

/** One line for each alert. */
export function runbookIndex(alerts) {
  const lines = alerts.map(({ alert, labels }) => `| [${alert}](${alert}.md) | ${labels.severity} | ${noticed(alert)} |`);
  return ['| Alert | Severity | People |', '|---|---|---|', ...lines, ''].join('\n');
}
