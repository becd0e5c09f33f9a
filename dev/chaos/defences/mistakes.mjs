// Whether the table of defences fits the sources and the rules.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { RULES } from '../check.mjs';
import { spanOf } from '../../defences/lib/table.mjs';
import { ROOT } from '../../stack.mjs';

/** Everything that does not fit, in words. */
export const mistakesOf = (defences) => defences.flatMap(({ id, rules, places }) => [
  ...(places.length === 0 ? [`${id}: nothing is switched`] : []),
  ...(rules.length === 0 ? [`${id}: no rule has to find it`] : []),
  ...rules.filter((rule) => !RULES.some(({ name }) => name === rule)).map((rule) => `${id}: there is no rule ${rule}`),
  ...(places.some(({ replace }) => /\bOFF\b/.test(replace)) ? [] : [`${id}: what it puts in has no OFF`]),
  ...places.flatMap(({ file, find }) => (
    existsSync(join(ROOT, file)) && spanOf({ find }, readFileSync(join(ROOT, file), 'utf8')) ? [] : [`${id}: not once in ${file}: ${find}`])),
]);
