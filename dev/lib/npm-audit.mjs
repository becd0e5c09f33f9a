// Advisories about npm packages: every lock file of the repository, judged by the registry's audit service. Exceptions are in
// dev/npm-audit.json: `{"id": "GHSA-…", "lock": "web/package-lock.json", "reason": "…"}`. One that nothing needs any more is a fault.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ROOT } from '../stack.mjs';

const LIMIT_MS = 60_000; // one small question; where nothing answers, lint goes on
const NO_RETRIES = ['--fetch-retries=0', '--fetch-timeout=20000'];

export const lockFiles = () => execFileSync('git', ['ls-files', '--', '*package-lock.json'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
export const exceptions = () => JSON.parse(readFileSync(join(ROOT, 'dev/npm-audit.json'), 'utf8')).ignore;

/** Asks about one lock file, of everything that is installed by it: `{advisories}`, or `{unjudged}` with the reason. */
export function ask(lock, more = []) {
  const args = ['audit', '--json', '--package-lock-only', ...NO_RETRIES, ...more];
  const { stdout, error } = spawnSync('npm', args, { cwd: join(ROOT, dirname(lock)), encoding: 'utf8', timeout: LIMIT_MS, maxBuffer: 1 << 26 });
  if (error) return { unjudged: error.message };
  return readAnswer(stdout);
}

/** What `npm audit --json` says. Packages that are affected through others name those alone: the advisory is counted once. */
export function readAnswer(text) {
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    return { unjudged: 'npm audit wrote no JSON' };
  }
  if (!answer.vulnerabilities || !answer.metadata) return { unjudged: answer.message ?? answer.error?.summary ?? 'npm audit gave no verdict' };
  const found = new Map();
  for (const { via } of Object.values(answer.vulnerabilities)) {
    for (const one of via.filter((cause) => typeof cause === 'object')) {
      found.set(one.url, { id: one.url.split('/').at(-1), name: one.name, range: one.range, severity: one.severity, title: one.title });
    }
  }
  return { advisories: [...found.values()] };
}

/** Lines about what is wrong: advisories nobody has argued away, and exceptions without a reason or a need. `answers` is by lock file. */
export function judge(answers, ignored) {
  const covers = (exception, lock, id) => exception.lock === lock && exception.id === id;
  const judged = Object.entries(answers).filter(([, { advisories }]) => advisories);
  const found = judged.flatMap(([lock, { advisories }]) => advisories.map((advisory) => ({ lock, ...advisory })));
  return [
    ...found.filter(({ lock, id }) => !ignored.some((exception) => covers(exception, lock, id)))
      .map(({ lock, id, name, range, severity, title }) => `${lock}: ${id} (${severity}), ${name} ${range}: ${title}`),
    ...ignored.filter(({ reason }) => !reason).map(({ id }) => `dev/npm-audit.json: ${id} is ignored without a reason`),
    ...ignored.filter((exception) => judged.some(([lock]) => lock === exception.lock) && !found.some(({ lock, id }) => covers(exception, lock, id)))
      .map(({ id, lock }) => `dev/npm-audit.json: nothing in ${lock} needs the exception ${id} any more`),
  ];
}
