// What lint makes of npm's audit: npm itself asks a registry on loopback that knows an advisory, none, or answers no such question.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { exceptions, judge, lockFiles, readAnswer } from '../../lib/npm-audit.mjs';
import { ROOT } from '../../stack.mjs';

const LOCK = 'bench/peers/package-lock.json';
const version = JSON.parse(readFileSync(join(ROOT, LOCK), 'utf8')).packages['node_modules/express'].version;
const ADVISORY = { id: 1, url: 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc', title: 'Tea is spilt', severity: 'moderate', vulnerable_versions: `<=${version}` };
const answerWith = (advisories) => (request, response) => {
  const asked = request.method === 'POST' && request.url.endsWith('/advisories/bulk');
  response.writeHead(asked ? 200 : 404, { 'content-type': 'application/json' }).end(asked ? JSON.stringify(advisories) : '{}');
};
const refuse = (_, response) => response.writeHead(405).end();

/** What npm says of the lock file when this registry is asked. */
async function audit(handler) {
  const server = http.createServer(handler);
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  try {
    const npm = spawn('npm', ['audit', '--json', '--package-lock-only', '--fetch-retries=0', `--registry=http://127.0.0.1:${server.address().port}/`, `--cache=${join(ROOT, 'target/npm-audit-cache')}`], { cwd: join(ROOT, dirname(LOCK)), stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    npm.stdout.setEncoding('utf8').on('data', (chunk) => { text += chunk; });
    await new Promise((resolve) => { npm.on('close', resolve); });
    return { [LOCK]: readAnswer(text) };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test('an advisory fails until an exception gives a reason', async () => {
  const answers = await audit(answerWith({ express: [ADVISORY] }));
  assert.deepEqual(judge(answers, []), [`${LOCK}: GHSA-aaaa-bbbb-cccc (moderate), express <=${version}: Tea is spilt`]);
  const exception = { id: 'GHSA-aaaa-bbbb-cccc', lock: LOCK, reason: 'the benchmark drinks none' };
  assert.deepEqual(judge(answers, [exception]), []);
  assert.deepEqual(judge(answers, [{ ...exception, reason: '' }]), ['dev/npm-audit.json: GHSA-aaaa-bbbb-cccc is ignored without a reason']);
  assert.equal(judge(answers, [{ ...exception, lock: 'web/package-lock.json' }]).length, 1, 'an exception is for one lock file');
});

test('a lock file without advisories is clean, and an exception it does not need is told', async () => {
  const answers = await audit(answerWith({}));
  assert.deepEqual(answers, { [LOCK]: { advisories: [] } });
  assert.deepEqual(judge(answers, [{ id: 'GHSA-aaaa-bbbb-cccc', lock: LOCK, reason: 'x' }]), [`dev/npm-audit.json: nothing in ${LOCK} needs the exception GHSA-aaaa-bbbb-cccc any more`]);
});

test('a registry that answers no such question is no verdict, and no exception is out of date by it', async () => {
  const answers = await audit(refuse);
  assert.match(answers[LOCK].unjudged, /405/);
  assert.deepEqual(judge(answers, [{ id: 'GHSA-aaaa-bbbb-cccc', lock: LOCK, reason: 'x' }]), []);
  assert.match(readAnswer('no JSON').unjudged, /no JSON/);
});

test('every lock file is asked about, and every exception is for one', () => {
  assert.ok(lockFiles().includes('web/package-lock.json') && lockFiles().includes('dev/docs/package-lock.json'));
  for (const { lock, reason } of exceptions()) assert.ok(lockFiles().includes(lock) && reason.length > 20, lock);
});
