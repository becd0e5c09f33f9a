// The steps that the suite runs against every provider. A driver starts the provider, registers the client as
// README.md says, and fills in its pages as a person would. The edge has the settings of docs/providers.md.
//
// A driver: {
//   name                      its heading in docs/providers.md
//   version                   the version that ran, for the table
//   exceptions                failing steps: {offered: 'why not'} or {fault: 'whose', symptom: /error/, says};
//                             {offered} without a symptom is a step that passes without the provider's help
//   start({edgeUrl, registration, client, account, accessTokenSecs})
//     → {origin, answer(page, person) → {url, …} | undefined, rotateKeys(), stop(), log()}, also client and
//       account if they differ, and asksWho(page, person) if its sign-in page has no field named password or login
// }
// The suite runs a step with an exception too, and fails if it works after all, so that the table stays true.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from '../product/client.mjs';
import { registration, settings } from './documents.mjs';
import { walk } from './walk.mjs';

export const ACCOUNT = { username: 'ada', password: 'analytical-engine-1843', name: 'Ada Lovelace', email: 'ada@example.com' };
const CLIENT = { id: 'vestibule', secret: 'a-secret-of-the-client-that-is-long-enough' };
const ACCESS_TOKEN_SECS = 5; // short enough for tests to wait
const EXPIRED_MS = 20_000; // until the provider rejects a token of that age
const SECRET_READ_MS = 25_000; // the edge rereads files within ten seconds; then it takes a few sign-ins
const LOGGED_MS = 5_000; // until the output of a process has arrived here
const STEP_LIMIT_MS = 120_000; // a provider that never responds fails the step and does not block the suite
const NEWS_MS = 15_000; // from a sign-out at the provider until every browser is signed out

const STEPS = {
  signIn: 'sign-in', profile: 'name and e-mail', refresh: 'refresh past expiry', signOut: 'sign-out', backChannel: 'back-channel logout', newKeys: 'changed keys', wrongSecret: 'wrong secret',
};

/** The log text when a provider rejects the client: RFC 6749, section 5.2, or the bare status. */
const CLIENT_REFUSED = /invalid_client|unauthorized_client|with status 40[13]\b/;

/** The metadata that says that a provider offers a step. */
const OFFER = { signOut: 'end_session_endpoint', backChannel: 'backchannel_logout_supported' };

/** An application that returns the access token that it received. */
async function echo() {
  const server = http.createServer((request, response) => response.end(request.headers.authorization ?? ''));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: server.address().port, stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }) };
}

export function suite(driver) {
  describe(driver.name, () => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-provider-'));
    const secretFile = join(folder, 'secret');
    const results = {};
    let [stack, provider, upstream, metadata, client, registered] = [];

    before(async () => {
      const edge = await freePort();
      const edgeUrl = `http://127.0.0.1:${edge}`;
      registered = registration(edgeUrl);
      provider = await driver.start({ edgeUrl, registration: registered, client: CLIENT, account: ACCOUNT, accessTokenSecs: ACCESS_TOKEN_SECS });
      client = provider.client ?? CLIENT;
      writeFileSync(secretFile, client.secret);
      upstream = await echo();
      const routes = join(folder, 'routes.toml');
      writeFileSync(routes, `[[route]]\npath = "/token"\nguard = "api"\nupstream = "http://127.0.0.1:${upstream.port}"\naccess_token = true\n`);
      const documented = { ...settings(driver.name, provider.origin, client), OIDC_CLIENT_SECRET_FILE: secretFile };
      const of = (...prefixes) => Object.fromEntries(Object.entries(documented).filter(([name]) => prefixes.some((prefix) => name.startsWith(prefix))));
      const issuer = documented.OIDC_ISSUER_URL;
      metadata = await (await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)).json();
      stack = await startStack({
        ports: { edge }, store: 'memory:', routes, provider: of('OIDC_'),
        sessionEnv: of('SESSION_'),
        // These settings only make the suite faster; they do not concern the provider.
        edgeEnv: { LOG_FORMAT: 'pretty', EDGE_POST_LOGOUT_REDIRECT: undefined, EDGE_RATE_LIMIT_LOGIN: '0', ...of('EDGE_') },
      });
    });

    after(async () => {
      await stack?.stop();
      await upstream?.stop();
      await provider?.stop();
      rmSync(folder, { recursive: true, force: true });
      if (!process.env.PROVIDERS_RESULTS) return;
      mkdirSync(process.env.PROVIDERS_RESULTS, { recursive: true });
      writeFileSync(join(process.env.PROVIDERS_RESULTS, `${driver.name}.json`), JSON.stringify({ kind: 'Provider', name: driver.name, version: driver.version, columns: STEPS, results }, null, 2));
    });

    const warnings = () => stack.logs('edge').split('\n').filter((line) => / (WARN|ERROR) |outcome="failure"/.test(line)); // audit records too

    /** Checks that a response of the edge is a redirect; otherwise fails with the reason from the edge's log. */
    async function isRedirect(answer) {
      if (answer.status === 302) return;
      const said = () => warnings().slice(-3).join('\n');
      await until(LOGGED_MS, said, () => 'the log says nothing').catch(() => {});
      assert.fail(`the edge answered ${answer.status}, ${/<p>(.*?)<\/p>/.exec(answer.text)?.[1] ?? answer.text.slice(0, 500)}\n${said()}`);
    }

    const start = (person, login) => walk(person, `${stack.edgeUrl}${login}`, { edgeUrl: stack.edgeUrl, answer: provider.answer });
    const json = (response) => { try { return response.json(); } catch { return undefined; } };

    /** The complete sign-in; returns the response to the callback. */
    async function attempt(person, login = '/api/auth/login') {
      const { landed, page, seen } = await start(person, login);
      if (landed?.startsWith(registered.redirectUri)) return person.navigate(landed);
      if (page?.url.startsWith(stack.edgeUrl)) return page; // the edge itself rejected it
      throw new Error(`no way back to ${registered.redirectUri}:\n${seen.join('\n')}\n${page?.text.slice(0, 3000) ?? landed}`);
    }

    async function signedIn() {
      const person = new Client();
      const answer = await attempt(person);
      await isRedirect(answer);
      return person;
    }

    /** Signs out here and continues at the provider; returns the final page. */
    async function signOut(person) {
      const { landed, page, seen } = await start(person, '/api/auth/logout');
      assert.ok(landed, `no way back from the sign-out:\n${seen.join('\n')}\n${page?.text.slice(0, 3000)}`);
      return landed;
    }

    const asksWho = (page, person) => (provider.asksWho ? provider.asksWho(page, person) : /name="(password|login)"/.test(page.text));

    /** Whether the provider signs the person in again without a prompt. */
    async function isKnown(person) {
      const silently = async (page) => ((await asksWho(page, person)) ? undefined : provider.answer(page, person));
      const { landed } = await walk(person, `${stack.edgeUrl}/api/auth/login`, { edgeUrl: stack.edgeUrl, answer: silently });
      if (landed === undefined || !new URL(landed).searchParams.has('code')) return false;
      await isRedirect(await person.navigate(landed)); // redeems the code
      return true;
    }

    const bodies = {
      async signIn() {
        const person = new Client();
        const answer = await attempt(person, '/api/auth/login?returnTo=/account%3Fa%3Db');
        await isRedirect(answer);
        assert.equal(answer.headers.get('location'), `${stack.edgeUrl}/account?a=b`);
        const me = await person.me(stack);
        assert.equal(me.status, 200, me.text);
        assert.ok(json(me).sub, me.text);
        assert.equal((await new Client().me(stack)).status, 204, 'another browser is not signed in');
      },

      async profile() {
        const me = json(await (await signedIn()).me(stack));
        const { name, email } = provider.account ?? ACCOUNT;
        assert.deepEqual({ name: me.name, email: me.email }, { name, email });
      },

      async refresh() {
        const person = await signedIn();
        const token = async () => {
          const answer = await person.fetch(`${stack.edgeUrl}/token`, { headers: { accept: 'application/json' } });
          assert.equal(answer.status, 200, `${answer.text}\n${stack.logs('session').slice(-3000)}`);
          assert.match(answer.text, /^Bearer ./);
          return answer.text;
        };
        const accepts = async (authorization) => (await fetch(metadata.userinfo_endpoint, { headers: { authorization } })).ok;
        let last = await token();
        assert.ok(await accepts(last), 'the provider takes its own token');
        for (let turn = 0; turn < 2; turn += 1) {
          const old = last;
          await signedIn(); // in a second browser: some providers put its auth_time into the next refreshed ID token
          await until(EXPIRED_MS, async () => !(await accepts(old)), () => 'the token never expires');
          last = await token();
          assert.notEqual(last, old, 'the token is replaced');
          assert.ok(await accepts(last), 'the provider takes the new token');
        }
        const me = await person.me(stack, '/api/auth/me?refetch=true');
        assert.equal(me.status, 200, me.text);
      },

      async signOut() {
        const person = await signedIn();
        assert.ok(await isKnown(person), 'the provider knows the person');
        const landed = await signOut(person);
        const [got, expected] = [new URL(landed), new URL(registered.postLogoutRedirectUri)];
        assert.equal(got.origin + got.pathname, expected.origin + expected.pathname, 'the registered page');
        assert.equal((await person.me(stack)).status, 204);
        assert.ok(!(await isKnown(person)), 'the provider has forgotten the person');
      },

      async backChannel() {
        assert.equal(metadata.backchannel_logout_supported, true, 'backchannel_logout_supported');
        const [laptop, tablet, other] = [await signedIn(), new Client(), await signedIn()];
        tablet.jars.set(provider.origin, new Map(laptop.cookies(provider.origin))); // the same session at the provider
        assert.equal((await attempt(tablet)).status, 302);
        assert.equal((await tablet.me(stack)).status, 200);
        await signOut(laptop);
        await until(NEWS_MS, async () => (await tablet.me(stack)).status === 204, () => `the other browser is still signed in:\n${stack.logs('edge').slice(-3000)}\n${provider.log().slice(-3000)}`);
        assert.equal((await other.me(stack)).status, 200, 'another session at the provider goes on');
      },

      async newKeys() {
        const person = await signedIn();
        const kids = async () => (await (await fetch(metadata.jwks_uri)).json()).keys.map((key) => key.kid ?? JSON.stringify(key));
        const old = await kids();
        await provider.rotateKeys();
        await signedIn();
        assert.ok((await kids()).some((kid) => !old.includes(kid)), 'the provider publishes another key');
        assert.equal((await person.me(stack)).status, 200, 'who was signed in stays so');
      },

      async wrongSecret() {
        const refused = async () => {
          const person = new Client();
          const answer = await attempt(person);
          const no = answer.status >= 400;
          if (no) assert.equal((await person.me(stack)).status, 204, 'no session');
          return no;
        };
        try {
          writeFileSync(secretFile, `${client.secret}-no-longer`);
          await until(SECRET_READ_MS, refused, () => 'a wrong secret signs people in');
          await until(LOGGED_MS, () => warnings().some((line) => CLIENT_REFUSED.test(line)), () => `the log does not say why:\n${warnings().join('\n')}`);
        } finally {
          writeFileSync(secretFile, client.secret);
        }
        await until(SECRET_READ_MS, async () => !(await refused()), () => `the right secret is refused:\n${warnings().slice(-5).join('\n')}`);
      },
    };

    for (const [step, title] of Object.entries(STEPS)) {
      const exception = driver.exceptions?.[step];
      test(exception ? `${title}: ${exception.offered ? 'not offered' : 'fails as known'}` : title, { timeout: STEP_LIMIT_MS }, async () => {
        let failure;
        try {
          await bodies[step]();
        } catch (error) {
          failure = error;
        }
        if (!exception) {
          results[step] = failure ? { status: 'fails', says: failure.message.split('\n')[0] } : { status: 'works' };
          if (failure) throw failure;
          return;
        }
        if (exception.offered) assert.ok(!metadata[OFFER[step]], `the provider's metadata has ${OFFER[step]}`);
        const passes = exception.offered && !exception.symptom;
        if (passes && failure) throw failure;
        assert.ok(passes || failure, `${title} works: docs/providers.md and the driver say that it does not`);
        if (exception.symptom) assert.match(failure.message, exception.symptom);
        results[step] = exception.offered ? { status: 'not offered', says: exception.offered } : { status: 'fails', fault: exception.fault, says: exception.says };
      });
    }
  });
}
