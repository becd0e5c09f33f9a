// Checks the prose of comments, documents and commit subjects: their length, and words that readers stumbled over.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

import { ROOT } from './stack.mjs';

const COLUMNS = 120;
const SUBJECT_COLUMNS = 72;
const SINCE = '2026-11-29T12:00:00Z'; // older subjects are longer; git takes the time of day if there is none
const SLASHES = /^\s*(?:\/\/|\/?\*)/;
const HASH = /^\s*#/;
const COMMENTS = { rs: SLASHES, proto: SLASHES, go: SLASHES, mjs: SLASHES, ts: SLASHES, tsx: SLASHES, css: SLASHES, yaml: HASH, yml: HASH, toml: HASH, py: HASH, sh: HASH };
const MADE = /\/gen\/|^k8s\/chart\/|^auth-edge\/proto\/envoy\//; // generated, or from elsewhere
/** Words that hide who acts, or that few people know in this sense, and what to write. */
const PLAIN = {
  'whoever|nobody|somebody|anybody|everybody': 'the role: client, browser, user, caller, operator', whatever: 'the thing',
  anew: 'again', 'told|tells': 'sent, reported', heard: 'received', beside: 'next to', 'in vain': 'without success', 'of before': 'earlier',
  'of late': 'recently', 'for good': 'permanently', 'is none|are none|was none': 'there is no', 'nothing of': 'no', 'worth nothing': 'rejected', 'stands? still': 'stops',
};
const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 }).trim().split('\n');
const hard = Object.entries(PLAIN).map(([words, plain]) => [new RegExp(`\\b(?:${words})\\b`, 'i'), plain]);
const problems = [];

function checkWords(place, text) {
  for (const [pattern, plain] of hard) if (pattern.test(text)) problems.push(`${place}: "${pattern.exec(text)[0]}": write ${plain}`);
}

for (const name of git('ls-files').filter((path) => !MADE.test(path))) {
  const isDocument = name.endsWith('.md');
  const comment = COMMENTS[extname(name).slice(1)];
  if (!isDocument && !comment) continue;
  let isCode = false;
  for (const [at, line] of readFileSync(join(ROOT, name), 'utf8').split('\n').entries()) {
    if (isDocument && line.trimStart().startsWith('```')) isCode = !isCode;
    if (!isDocument && !comment.test(line)) continue;
    const place = `${name}:${at + 1}`;
    if (!isCode && line.length > COLUMNS && !(isDocument && line.includes('|'))) problems.push(`${place}: ${line.length} columns of ${COLUMNS}`);
    if (!isCode) checkWords(place, line.replace(/`[^`]*`|"[^"]*"/g, ''));
  }
}
for (const commit of git('log', `--since=${SINCE}`, '--format=%h %s')) {
  const subject = commit.slice(commit.indexOf(' ') + 1);
  if (subject.length > SUBJECT_COLUMNS) problems.push(`${commit}: ${subject.length} columns of ${SUBJECT_COLUMNS}`);
}
process.stdout.write(`${problems.map((problem) => `${problem}\n`).join('')}${problems.length} problems of prose\n`);
process.exitCode = problems.length > 0 ? 1 : 0;
