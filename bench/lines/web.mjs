// P12: size of the script of a first load of the web app, and time from a click to its result, in a real browser.
import { join } from 'node:path';

import { Problem } from '../../dev/lib/build.mjs';
import { ROOT } from '../../dev/stack.mjs';
import { fixed, output } from '../lib/measure.mjs';
import { PROFILE } from '../lib/services.mjs';

export async function web({ say }) {
  const { stdout, status } = await output(process.execPath, [join(ROOT, 'web/e2e/measure.mjs'), '--json', '--profile', PROFILE]);
  if (status !== 0) throw new Problem(`web/e2e/measure.mjs failed:\n${stdout}`);
  const { firstLoad, interactions } = JSON.parse(stdout);
  const loads = Object.entries(firstLoad).sort(([, a], [, b]) => b.scriptBytes - a.scriptBytes);
  const clicks = Object.entries(interactions).sort(([, a], [, b]) => b.median - a.median);
  const [[page, { scriptBytes }], [click, slowest]] = [loads[0], clicks[0]];
  say(`P12: ${scriptBytes} bytes of script, ${slowest.median} ms after a click`);
  return { rows: [
    { id: 'P12 script', work: 'script of a first load, compressed', unit: 'kB', ...fixed(scriptBytes / 1000, 1), note: `the largest: ${page}` },
    { id: 'P12 click', work: 'click to the picture that shows what it did', unit: 'ms', ...slowest, digits: 0, note: `the slowest of ${clicks.length}: ${click}` },
  ] };
}
