// Runs each example of docs/session-api.md as a program against a real session service.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Child } from '../../lib/child.mjs';
import { EXAMPLES, TYPESCRIPT } from '../../lib/examples.mjs';
import { until } from '../../lib/net.mjs';
import { makeCertificates, serve, startProvider, startService } from './service.mjs';

const DEADLINE_MS = 30_000;
const { connect } = await import(TYPESCRIPT);
let provider;
let api;
let service;
let secured;
let sessions;
const folder = mkdtempSync(join(tmpdir(), 'vestibule-certificates-'));
const certificate = makeCertificates(folder);

before(async () => {
  provider = await startProvider();
  api = await serve((request, response) => response.end(`called with ${request.headers.authorization}`));
  service = await startService(provider.url, 'file:');
  sessions = connect(service.url);
  writeFileSync(certificate('callers.toml'), '[[caller]]\nidentity = "dns:orders.shop.internal"\nrpcs = ["GetSession"]\n');
  secured = await startService(provider.url, 'memory:', {
    SESSION_TLS_CERT_FILE: certificate('server.pem'),
    SESSION_TLS_KEY_FILE: certificate('server.key'),
    SESSION_CLIENT_CA_FILE: certificate('ca.pem'),
    SESSION_CALLERS: certificate('callers.toml'),
  });
});
after(async () => {
  await service?.stop();
  await secured?.stop();
  rmSync(folder, { recursive: true, force: true });
  await Promise.all([provider?.stop(), api?.stop()]);
});

const minutes = (count) => ({ seconds: BigInt(Math.floor(Date.now() / 1000) + 60 * count), nanos: 0 });

/** Creates a session; `tokens` lists its tokens. */
function begin(subject, tokens = {}) {
  const usual = { accessToken: `access-of-${subject}`, tokenType: 'Bearer', scope: 'openid orders:read', expiresAt: minutes(30) };
  return sessions.createSession({ issuer: provider.url, user: JSON.stringify({ sub: subject }), tokens: { ...usual, ...tokens } });
}

/** Creates a session that the provider refuses to refresh. */
const beginStale = (subject) => begin(subject, { expiresAt: minutes(-5), refreshToken: 'revoked' });

const byId = async (id) => (await sessions.getSession({ by: { case: 'sessionId', value: id } })).session;
const end = (id) => sessions.endSession({ by: { case: 'sessionId', value: id } });

/** Starts an example; `at` is the address of its service. */
function launch(language, args, { at = service, sessionId = '', tls = {} } = {}) {
  const { command, args: first, env } = EXAMPLES[language];
  const address = language === 'python' || language === 'go' ? at.address : at.url;
  return new Child(language, command, [...first, ...args], { env: { PATH: process.env.PATH, ...env, SESSION_SVC: address, SESSION_ID: sessionId, ...tls } });
}

/** Runs an example to its end, checks that it succeeds, and returns its output. */
async function output(language, args, options) {
  const example = launch(language, args, options);
  const { code } = await example.exited;
  assert.equal(code, 0, example.output);
  return example.output.trim();
}

for (const language of Object.keys(EXAMPLES)) {
  describe(language, () => {
    test('looks a session up', async () => {
      const { session } = await begin('ada');
      assert.equal(await output(language, ['look-up', session.handle]), 'ada is signed in');
      assert.equal(await output(language, ['look-up', '0'.repeat(32)]), 'no user is signed in: ERR_MISSING_SESSION');
    });

    test('takes a service that cannot be reached for no answer', async () => {
      const nobody = await serve(() => {});
      await nobody.stop();
      const example = launch(language, ['look-up', '0'.repeat(32)], { at: { url: nobody.url, address: nobody.url.slice(7) } });
      assert.notEqual((await example.exited).code, 0);
      assert.doesNotMatch(example.output, /no user is signed in/);
    });

    test('calls an API with an access token, or says what is in the way', async () => {
      const { sessionId } = await begin('grace');
      const call = (scope, id) => output(language, ['call-api', api.url, scope], { sessionId: id });
      assert.equal(await call('orders:read', sessionId), 'called with Bearer access-of-grace');
      assert.equal(await call('orders:write', sessionId), 'not granted: orders:write');
      const { sessionId: stale, session } = await beginStale('grace');
      assert.equal(await call('orders:read', stale), 'sign in again: ERR_FAILED_REFRESH_GRANT');
      assert.equal(await output(language, ['look-up', session.handle]), 'grace has to sign in again before an API can be called');
      await end(sessionId);
      assert.equal(await call('orders:read', sessionId), 'sign in again: ERR_MISSING_SESSION');
    });

    test('changes a session that others change at the same time, and loses no change', async () => {
      const { sessionId } = await begin('alan');
      const keys = ['a', 'b', 'c'];
      let writing = true;
      const others = (async () => {
        // Another writer keeps changing the session, so versions go stale all the time.
        for (let count = 0; writing; count += 1) {
          const session = await byId(sessionId);
          const attributes = JSON.stringify({ ...JSON.parse(session.attributes), others: count });
          await sessions.updateSession({ sessionId, attributes, version: session.version }).catch(() => {});
        }
      })();
      await Promise.all(keys.map(async (key) => assert.match(await output(language, ['remember', key, `${key}!`], { sessionId }), /remembered$/)));
      writing = false;
      await others;
      const attributes = JSON.parse((await byId(sessionId)).attributes);
      for (const key of keys) assert.equal(attributes[key], `${key}!`);
    });

    test("lists and ends a person's sessions, over several pages, and no other user's", async () => {
      const person = `person-${language}`;
      const [bystander, ...theirs] = await Promise.all(['bystander', ...Array(103).fill(person)].map((subject) => begin(subject)));
      const lines = (await output(language, ['end-all', provider.url, person])).split('\n');
      assert.deepEqual(lines.sort(), theirs.map(({ session }) => `${session.handle} ended`).sort());
      assert.equal(await output(language, ['end-all', provider.url, person]), '');
      assert.equal((await byId(bystander.sessionId)).subject, 'bystander');
    });

    test('shows its certificate to a service that wants one, and is let in by its name', async () => {
      const tls = { SESSION_CA: certificate('ca.pem'), SESSION_CERT: certificate('orders.pem'), SESSION_KEY: certificate('orders.key') };
      const answer = await output(language, ['look-up', '0'.repeat(32)], { at: secured, tls });
      assert.equal(answer, 'no user is signed in: ERR_MISSING_SESSION');
      const unknown = launch(language, ['look-up', '0'.repeat(32)], { at: secured, tls: { SESSION_CA: tls.SESSION_CA } });
      assert.notEqual((await unknown.exited).code, 0);
    });

    for (const [store, back] of [['file:', 'live again'], ['memory:', 'missed: read cached sessions again']]) {
      test(`watches endings over a kill of the service on ${store}`, async () => {
        const killed = await startService(provider.url, store);
        const client = connect(killed.url);
        const ending = async () => {
          const { sessionId, session } = await client.createSession({ issuer: provider.url, user: JSON.stringify({ sub: 'ada' }) });
          await client.endSession({ by: { case: 'sessionId', value: sessionId } });
          return `ended ${session.handle} CAUSE_LOGOUT`;
        };
        const example = launch(language, ['watch'], { at: killed });
        const printed = (line) => until(DEADLINE_MS, async () => example.output.split('\n').includes(line), () => `not printed: ${line}\n${example.output}`);
        try {
          await printed('live: read the sessions you need');
          await printed(await ending());
          await killed.kill();
          await until(DEADLINE_MS, async () => example.output.includes('lost: do not trust'), () => example.output);
          await killed.start();
          await printed(back);
          await printed('live again');
          await printed(await ending());
          assert.equal(example.output.includes('missed'), store === 'memory:', example.output);
        } finally {
          await example.stop('SIGKILL');
          await killed.stop();
        }
      });
    }
  });
}
