// The answer as a form that the real provider's page posts: all the ways it can go, without a browser's rules about cookies.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

let stack;

before(async () => { stack = await startStack({ host: 'localhost', edgeEnv: { OIDC_RESPONSE_MODE: 'form_post', EDGE_RATE_LIMIT_LOGIN: '0' } }); });
after(() => stack?.stop());

const isCallback = (url) => new URL(url).pathname === '/api/auth/callback';

/** What a browser sends with a form that a page of another site posts by itself. */
const POSTED = { 'sec-fetch-site': 'cross-site' };

/** Signs in at the provider, or cancels there: gives the form its page would post. */
async function answerOf(person, { login = '/api/auth/login', cancel = false, account = stack.accounts[0] } = {}) {
  const page = await person.follow(new URL(login, stack.edgeUrl).href, isCallback);
  let last = page;
  if (!page.text.includes('Submitting Callback')) {
    const body = cancel ? new URLSearchParams() : new URLSearchParams({ email: account.email, password: account.password });
    const answer = await person.navigate(`${page.url}/${cancel ? 'abort' : 'login'}`, { method: 'POST', body });
    last = await person.follow(new URL(answer.headers.get('location'), page.url).href, isCallback);
  }
  const [, action] = /<form method="post" action="([^"]+)"/.exec(last.text) ?? assert.fail(last.text);
  const fields = [...last.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
  return { action, form: new URLSearchParams(fields) };
}

const post = (person, { action, form }) => person.navigate(action, { method: 'POST', body: form, headers: { ...POSTED, origin: stack.issuer } });

test('the posted answer signs in by a 303, and nothing of it is in an address', async () => {
  const person = new Client();
  const answer = await answerOf(person, { login: '/api/auth/login?returnTo=/account%3Ftab%3D1%23top' });
  assert.equal(answer.action, `${stack.edgeUrl}/api/auth/callback`);
  assert.deepEqual([...answer.form.keys()].sort(), ['code', 'iss', 'state']);
  const landed = await post(person, answer);
  assert.equal(landed.status, 303, landed.text);
  assert.equal(landed.headers.get('location'), `${stack.edgeUrl}/account?tab=1#top`);
  assert.equal(landed.headers.get('cache-control'), 'no-store');
  assert.equal((await person.me(stack)).json().email, stack.accounts[0].email);
});

test('the same form posted again by a person who is signed in leads on, and the session stays', async () => {
  const person = new Client();
  const answer = await answerOf(person);
  assert.equal((await post(person, answer)).status, 303);
  const cookie = person.sessionCookie(stack);
  assert.equal((await post(person, answer)).status, 303);
  assert.deepEqual(person.sessionCookie(stack), cookie);
  assert.equal((await person.me(stack)).status, 200);
});

test('an answer in an address is 405; elsewhere, doubled or foreign it is 400', async () => {
  const person = new Client();
  const answer = await answerOf(person);
  const inAddress = await person.navigate(`${answer.action}?${answer.form}`);
  assert.deepEqual([inAddress.status, inAddress.headers.get('allow')], [405, 'POST']);
  assert.equal((await post(new Client(), answer)).status, 400);
  assert.equal((await post(person, answer)).status, 303, 'and still good where it belongs');
  for (const change of [(form) => form.append('code', 'another'), (form) => form.set('iss', 'https://other.example'), (form) => form.delete('state')]) {
    const spoiled = await answerOf(person);
    change(spoiled.form);
    assert.equal((await post(person, spoiled)).status, 400);
  }
  assert.equal((await person.me(stack)).status, 200);
});

test('a sign-in cancelled at the provider is 400 with a way to try again', async () => {
  const person = new Client();
  const refused = await post(person, await answerOf(person, { login: '/api/auth/login?returnTo=/account', cancel: true }));
  assert.equal(refused.status, 400);
  assert.match(refused.text, /was cancelled/);
  assert.match(refused.text, /api\/auth\/login\?returnTo=[^"]*account/);
  assert.equal((await person.me(stack)).status, 204);
});

test('signing out ends the session here and goes on at the provider', async () => {
  const person = new Client();
  assert.equal((await post(person, await answerOf(person))).status, 303);
  const out = await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
  assert.ok(out.headers.get('location').startsWith(stack.issuer));
  assert.equal((await person.me(stack)).status, 204);
});
