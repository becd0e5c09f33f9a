// What becomes of a session when its account is disabled at the provider, with SESSION_REVALIDATE_SECS and without it. No route needs a token.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from '../product/client.mjs';
import { registration, settings } from './documents.mjs';
import { djangoAllauth } from './drivers/django-allauth.mjs';
import { djangoOidcProvider } from './drivers/django-oidc-provider.mjs';
import { ACCOUNT } from './suite.mjs';
import { walk } from './walk.mjs';

const CLIENT = { id: 'vestibule', secret: 'a-secret-of-the-client-that-is-long-enough' };
const ENDED_MS = 60_000; // two seconds until the next grant is due, five in the edge's cache, and a busy machine
const GRANT = /"POST \S+\/token\/? HTTP/g; // a line of Django's log

/** A provider with two edges: one whose session service revalidates, and one whose does not. A person is signed in at both. */
async function withBoth(driver, use) {
  const ports = [await freePort(), await freePort()];
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const redirectUri = urls.map((url) => registration(url).redirectUri).join('\n');
  const provider = await driver.start({ registration: { ...registration(urls[0]), redirectUri }, client: CLIENT, account: ACCOUNT, accessTokenSecs: 300 });
  const stacks = [];
  try {
    for (const [at, sessionEnv] of [{ SESSION_REVALIDATE_SECS: '2' }, {}].entries()) {
      stacks.push(await startStack({
        ports: { edge: ports[at] }, store: 'memory:', sessionEnv, edgeEnv: { EDGE_POST_LOGOUT_REDIRECT: undefined },
        provider: { ...settings(driver.name, provider.origin, CLIENT), OIDC_CLIENT_SECRET: CLIENT.secret },
      }));
    }
    const status = [];
    for (const stack of stacks) {
      const person = new Client();
      const { landed, seen } = await walk(person, `${stack.edgeUrl}/api/auth/login`, { edgeUrl: stack.edgeUrl, answer: provider.answer });
      assert.ok(landed, seen.join('\n'));
      const answer = await person.navigate(landed);
      assert.equal(answer.status, 302, `${answer.text.slice(0, 500)}\n${stack.logs('edge').slice(-3000)}`);
      assert.equal((await person.me(stack)).status, 200);
      status.push(async () => (await person.me(stack)).status);
    }
    await use({ provider, revalidated: status[0], left: status[1], log: () => stacks[0].logs('session').slice(-3000) });
  } finally {
    for (const stack of stacks) await stack.stop();
    await provider.stop();
  }
}

const grants = (provider) => provider.log().match(GRANT)?.length ?? 0;

describe('an account that is disabled at the provider', () => {
  test('django-allauth refuses to refresh: the session ends with revalidation, and without it stays', async () => {
    await withBoth(djangoAllauth, async ({ provider, revalidated, left, log }) => {
      await provider.disable();
      await until(ENDED_MS, async () => (await revalidated()) === 204, () => `the session goes on:\n${log()}`);
      assert.match(log(), /refused/);
      assert.equal(await left(), 200);
    });
  });

  test('django-oidc-provider goes on refreshing: the session stays with revalidation too', async () => {
    await withBoth(djangoOidcProvider, async ({ provider, revalidated, left, log }) => {
      await provider.disable();
      const before = grants(provider);
      await until(ENDED_MS, async () => {
        assert.equal(await revalidated(), 200);
        return grants(provider) >= before + 2;
      }, () => `nothing is revalidated:\n${log()}`);
      assert.deepEqual([await revalidated(), await left()], [200, 200]);
    });
  });
});
