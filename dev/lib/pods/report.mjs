// The table of a run, for people and for docs/kubernetes/pods.md.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ROOT } from '../../stack.mjs';
import { Problem } from '../build.mjs';
import { CONTRACT } from './contract.mjs';

const KEPT = join(ROOT, 'target/pods/results.json');
const DOCUMENT = join(ROOT, 'docs/kubernetes/pods.md');
const [BEGIN, END] = ['<!-- figures: made by `make pods` -->', '<!-- end of figures -->'];

const seconds = (ms) => (ms === 0 ? '0' : `${(ms / 1_000).toFixed(1)} s`);
const allowed = ({ failed, refusedMs }) => (failed === 'some' ? `${seconds(refusedMs)} at most` : `${failed} failed`);

/** One line for a terminal, as soon as the event is over. */
export function line({ name, sent, failed, lost, longestRefusalMs, honouredMs, slowestMs, why, complaints }) {
  const reasons = Object.entries(why).map(([what, [first, count, last]]) => `${what} ×${count} at ${seconds(first)}–${seconds(last)}`).join(', ');
  const verdict = complaints.length === 0 ? 'kept' : `BROKEN: ${complaints.join('; ')}`;
  return `${name}: ${sent} requests, ${failed} failed${reasons && ` (${reasons})`}, ${lost} sessions lost, longest refusal ${seconds(longestRefusalMs)}, honoured after the end ${honouredMs} ms, slowest ${slowestMs} ms: ${verdict}`;
}

/** What containers wrote of the kind WARN or ERROR since then (Date.now()): each once, with how often and when it came first and last. */
export async function warnings(cluster, since) {
  const folder = await cluster.keepEverythingWritten();
  const found = new Map();
  for (const file of readdirSync(folder)) {
    for (const text of readFileSync(join(folder, file), 'utf8').split('\n').filter((one) => /"level":"(?:WARN|ERROR)"/.test(one))) {
      const { timestamp, message, error, reason, 'error.sources': sources } = JSON.parse(text);
      const at = (Date.parse(timestamp) - since) / 1_000;
      if (at < 0) continue;
      const said = [file.replace(/^vestibule-pods-\d+-|-[0-9a-f]{6}-.*$/g, ''), message, reason ?? error, sources?.at(-1)].filter(Boolean).join(': ');
      const before = found.get(said) ?? { count: 0, first: at };
      found.set(said, { count: before.count + 1, first: Math.min(before.first, at), last: Math.max(before.last ?? at, at) });
    }
  }
  return [...found].map(([said, { count, first, last }]) => `${said} ×${count} at ${first.toFixed(1)}–${last.toFixed(1)} s`).join('\n');
}

/** The table, in Markdown. */
export function table(results) {
  const rows = results.map(({ name, sent, failed, lost, longestRefusalMs, honouredMs, complaints }) =>
    `| ${name} | ${allowed(CONTRACT[name])} | ${sent} | ${failed} | ${lost} | ${seconds(longestRefusalMs)} | ${honouredMs} ms | ${complaints.length === 0 ? 'kept' : `**broken**: ${complaints.join('; ')}`} |`);
  return [
    '| What happens | May be refused | Requests sent | Failed | Sessions lost | Longest refusal of one person | Honoured after its end | |',
    '|---|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

/**
 * Adds results to those that earlier runs of the same images have left, so that a long run can be made in parts; gives all of them.
 * Those of other images are forgotten.
 */
export function keep(results, images) {
  const before = existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, 'utf8')) : {};
  const kept = { images, results: { ...(JSON.stringify(before.images) === JSON.stringify(images) && before.results), ...Object.fromEntries(results.map((result) => [result.name, result])) } };
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, JSON.stringify(kept, null, 2));
  return Object.keys(CONTRACT).flatMap((name) => kept.results[name] ?? []);
}

/** Writes the table between its marks in the document. Every event has to have been run. */
export function writeDocument(results, about) {
  const missing = Object.keys(CONTRACT).filter((name) => !results.some((result) => result.name === name));
  if (missing.length > 0) throw new Problem(`the table has to have every event; with these images there has not been: ${missing.join(', ')}`);
  const text = readFileSync(DOCUMENT, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const [, after] = rest.split(END);
  writeFileSync(DOCUMENT, `${before}${BEGIN}\n${about}\n\n${table(results)}\n${END}${after}`);
}
