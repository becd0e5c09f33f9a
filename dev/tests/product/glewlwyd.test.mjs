// The happy paths at a second real provider, so that nothing rests on how the first one understands the specifications.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { ADA, CLIENT, signInAt, startGlewlwyd } from './glewlwyd.mjs';

const WITH_SID = 'aud,iss,iat,exp,nbf,nonce,azp,auth_time,at_hash'; // the profile names the provider's session
const SECRETS = mkdtempSync(join(tmpdir(), 'vestibule-client-'));
let provider;
let stack;

before(async () => {
  const edge = await freePort();
  // So short-lived that every use of an access token needs a refresh first.
  provider = await startGlewlwyd({ edgeUrl: `http://127.0.0.1:${edge}`, accessTokenSecs: 30 });
  writeFileSync(join(SECRETS, 'secret'), CLIENT.secret);
  const settings = {
    OIDC_ISSUER_URL: provider.issuer,
    OIDC_CLIENT_ID: CLIENT.id,
    OIDC_CLIENT_SECRET_FILE: join(SECRETS, 'secret'),
  };
  stack = await startStack({ ports: { edge }, sessionEnv: settings, edgeEnv: { ...settings, EDGE_FRONTCHANNEL_LOGOUT: 'true', EDGE_CLAIM_FILTER: WITH_SID } });
});
after(async () => {
  await stack?.stop();
  await provider?.stop();
  rmSync(SECRETS, { recursive: true, force: true });
});

/** From our login to the provider and back to the callback's address. */
async function authorize(person, login) {
  const started = await person.navigate(`${stack.edgeUrl}${login}`);
  assert.equal(started.status, 302, started.text);
  const answer = await person.navigate(started.headers.get('location').replace(/#$/, '&g_continue'));
  assert.equal(answer.status, 302, answer.text);
  return { started: started.headers.get('location'), callback: answer.headers.get('location') };
}

test('a sign-in at glewlwyd: pushed request, ES256 tokens, issuer with a last slash', async () => {
  const person = new Client();
  await signInAt(person, provider);
  const { started, callback } = await authorize(person, '/api/auth/login?returnTo=/account%3Fa%3Db');
  assert.deepEqual([...new URL(started).searchParams.keys()], ['client_id', 'request_uri']);
  const landed = await person.navigate(callback);
  assert.equal(landed.headers.get('location'), `${stack.edgeUrl}/account?a=b`, landed.text);
  const user = (await person.me(stack)).json();
  assert.equal(user.name, ADA.name);
  assert.equal(user.email, ADA.email);
  assert.equal((await person.navigate(callback)).status, 302, 'a person who is signed in goes on');
  assert.equal((await new Client().navigate(callback)).status, 400, 'the same answer is good once');
  assert.equal((await person.me(stack)).status, 200);
});

test('the session refreshes its tokens at glewlwyd again and again, and signs out', async () => {
  const person = new Client();
  await signInAt(person, provider);
  const { callback } = await authorize(person, '/api/auth/login');
  assert.equal((await person.navigate(callback)).status, 302);
  for (let turn = 0; turn < 3; turn += 1) {
    const me = await person.me(stack, '/api/auth/me?refetch=true');
    assert.equal(me.status, 200, me.text);
    assert.equal(me.json().email, ADA.email);
  }
  const out = await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
  assert.equal(out.status, 302);
  assert.equal((await person.me(stack)).status, 204);
});

async function signedIn(person) {
  await signInAt(person, provider);
  const { callback } = await authorize(person, '/api/auth/login');
  assert.equal((await person.navigate(callback)).status, 302);
  return (await person.me(stack)).json().sid;
}

test('a sign-out goes on at glewlwyd, which signs out other browsers by frames', async () => {
  const [laptop, tablet, desk] = [new Client(), new Client(), new Client()];
  const sid = await signedIn(laptop);
  tablet.jars.set(provider.origin, laptop.cookies(provider.origin));
  assert.equal(await signedIn(tablet), sid, 'the same session at the provider');
  assert.notEqual(await signedIn(desk), sid);

  const out = await laptop.navigate(`${stack.edgeUrl}/api/auth/logout`);
  const end = await laptop.navigate(out.headers.get('location'));
  assert.equal(end.status, 302, end.text);
  const page = new URL(end.headers.get('location')).searchParams;
  assert.deepEqual([page.get('prompt'), page.get('sid'), page.get('client_id')], ['end_session', sid, CLIENT.id]);
  const back = new URL(page.get('callback_url'));
  assert.equal(back.origin + back.pathname, `${stack.edgeUrl}/`);
  assert.equal(back.searchParams.get('state'), new URL(out.headers.get('location')).searchParams.get('state'));

  // What that page does next: a frame for each client of the session. A frame's request carries no cookie of ours.
  const clients = (await laptop.fetch(`${provider.issuer}session/${sid}/${CLIENT.id}`)).json();
  for (const { frontchannel_logout_uri: uri } of clients.client) {
    const frame = await new Client().navigate(`${uri}?${new URLSearchParams({ iss: clients.iss, sid })}`, { headers: { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' } });
    assert.equal(frame.status, 200, frame.text);
    assert.match(frame.headers.get('content-security-policy'), new RegExp(`frame-ancestors ${provider.origin}`));
  }
  await until(15_000, async () => (await tablet.me(stack)).status === 204, () => 'the other browser is still signed in');
  assert.equal((await desk.me(stack)).status, 200, 'another session of the same person stays');
});

test('the logout token of a draft, without exp and of another typ, is refused', async () => {
  const person = new Client();
  const sid = await signedIn(person);
  const refused = () => stack.logs('edge').split('"step":"logout_token"').length;
  const before = refused();
  assert.equal((await person.fetch(`${provider.issuer}session/${sid}/`, { method: 'DELETE' })).status, 200);
  await until(10_000, () => refused() > before, () => 'no logout token came');
  assert.equal((await person.me(stack)).status, 200);
});

test('nobody signed in at glewlwyd means nobody here', async () => {
  const stranger = new Client();
  const login = await stranger.navigate(`${stack.edgeUrl}/api/auth/login`);
  const answer = await stranger.navigate(login.headers.get('location'));
  assert.equal(answer.status, 302);
  assert.ok(answer.headers.get('location').startsWith(provider.origin), 'the provider asks who it is');
  assert.equal((await stranger.me(stack)).status, 204);
});
