// The product as processes, with the real provider: sign-in, profile, sign-out, and what each route answers.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';

const UNAUTHORIZED = '{"error":"not_authenticated","description":"The user does not have an active session or is not authenticated"}';
let stack;

before(async () => { stack = await startStack({ edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0' } }); });
after(() => stack?.stop());

test('a person signs in, sees the profile and signs out, also at the provider', async () => {
  const person = new Client();
  const landed = await person.signIn(stack, { login: '/api/auth/login?returnTo=/account%3Ftab%3D1%23top' });
  assert.equal(landed.headers.get('location'), `${stack.edgeUrl}/account?tab=1#top`);
  assert.equal(landed.headers.get('cache-control'), 'no-store');

  const me = await person.me(stack);
  assert.equal(me.status, 200);
  assert.equal(me.headers.get('cache-control'), 'no-store');
  const user = me.json();
  assert.equal(user.email, stack.accounts[0].email);
  for (const protocol of ['aud', 'iss', 'iat', 'exp', 'nbf', 'nonce', 'azp', 'auth_time', 's_hash', 'at_hash', 'c_hash', 'jti', 'sid', 'typ', 'scope', 'client_id']) {
    assert.ok(!(protocol in user), `${protocol} is the protocol's, not the person's`);
  }

  const out = await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
  assert.equal(out.status, 302);
  assert.ok(out.headers.get('location').startsWith(stack.issuer), 'sign-out goes on at the provider');
  assert.equal(person.sessionCookie(stack), undefined);
  assert.equal((await person.me(stack)).status, 204);
});

test('the session cookie signed out with is refused afterwards', async () => {
  const person = new Client();
  await person.signIn(stack);
  const [name, value] = person.sessionCookie(stack);
  await person.navigate(`${stack.edgeUrl}/api/auth/logout`);
  const replayed = await request(`${stack.edgeUrl}/api/auth/me`, { headers: { cookie: `${name}=${value}` } });
  assert.equal(replayed.status, 204);
});

test('signing in again ends the session the browser had and gives a new name', async () => {
  const person = new Client();
  await person.signIn(stack);
  const [name, before] = person.sessionCookie(stack);
  await person.signIn(stack);
  const [, now] = person.sessionCookie(stack);
  assert.notEqual(now, before);
  const old = await request(`${stack.edgeUrl}/api/auth/me`, { headers: { cookie: `${name}=${before}` } });
  assert.equal(old.status, 204);
});

test('the tokens of a second sign-in work after the session of the first has ended', async () => {
  const person = new Client();
  await person.signIn(stack);
  await person.signIn(stack);
  const profiles = [];
  // Long enough for anything the service does in the background about the first.
  await until(15_000, async () => {
    profiles.push((await person.me(stack, '/api/auth/me?refetch=true')).status);
    return profiles.length === 20;
  }, () => `${profiles}`);
  assert.deepEqual([...new Set(profiles)], [200]);
});

test('without a session me is 204 without a body and 401 is word for word', async () => {
  const stranger = new Client();
  const me = await stranger.me(stack);
  assert.equal(me.status, 204);
  assert.equal(me.text, '');
  const unauthorized = await stranger.fetch(`${stack.edgeUrl}/api/auth/401`);
  assert.equal(unauthorized.status, 401);
  assert.equal(unauthorized.text, UNAUTHORIZED);
});

test('anything but the known actions is 404', async () => {
  const stranger = new Client();
  for (const path of ['/api/auth/unknown', '/api/auth/', '/api/auth', '/api/auth/me/x', '/api/auth/Me', '/api/auth/LOGIN', '/api/auth/__proto__',
    '/api/auth/me.css', '/api/auth/constructor', '/api/auth/access-token', '/api/auth/frontchannel-logout']) {
    assert.equal((await stranger.fetch(stack.edgeUrl + path)).status, 404, path);
  }
});

test('the wrong method is 405, names the right ones, and touches nothing', async () => {
  const person = new Client();
  await person.signIn(stack);
  for (const [method, action, allowed] of [['POST', 'login', /GET/], ['PUT', 'logout', /GET.*POST|POST.*GET/], ['DELETE', 'me', /GET/], ['POST', 'callback', /GET/], ['GET', 'backchannel-logout', /POST/]]) {
    const answer = await person.fetch(`${stack.edgeUrl}/api/auth/${action}`, { method });
    assert.equal(answer.status, 405, `${method} ${action}`);
    assert.match(answer.headers.get('allow'), allowed);
    assert.deepEqual(answer.headers.getSetCookie(), []);
  }
  assert.equal((await person.me(stack)).status, 200);
});

test('every answer names itself, and pages and errors repeat the name', async () => {
  const stranger = new Client();
  for (const path of ['/', '/api/auth/me', '/api/auth/unknown', '/api/auth/callback']) {
    const answer = await stranger.navigate(stack.edgeUrl + path);
    assert.match(answer.headers.get('x-request-id') ?? '', /^[\w-]{8,}$/, path);
  }
  const page = await stranger.navigate(`${stack.edgeUrl}/api/auth/callback?code=x&state=y`);
  assert.ok(page.text.includes(page.headers.get('x-request-id')));
});

test('a returnTo that leads elsewhere is dropped and the person lands at home', async () => {
  for (const target of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)', '/%09/evil.example', 'https:evil.example',
    `blob:${stack.edgeUrl}/x`, `http://user@${new URL(stack.edgeUrl).host}/`, `${stack.edgeUrl}.evil.example/`, `/${'a'.repeat(1100)}`]) {
    const person = new Client();
    const landed = await person.signIn(stack, { login: `/api/auth/login?returnTo=${encodeURIComponent(target)}` });
    assert.equal(new URL(landed.headers.get('location')).origin, new URL(stack.edgeUrl).origin, target);
    assert.ok(!landed.headers.get('location').includes('aaaa'), target);
  }
});

test('a callback out of nowhere is 400, offers to try again and calls no provider', async () => {
  const stranger = new Client();
  for (const query of ['', '?code=abc', '?state=abc', '?code=a&state=b', '?error=access_denied&state=b', '?code=a&code=b&state=c', `?code=${'x'.repeat(5000)}&state=y`]) {
    const page = await stranger.navigate(`${stack.edgeUrl}/api/auth/callback${query}`);
    assert.equal(page.status, 400, query);
    assert.match(page.text, /api\/auth\/login/, 'the page offers to try again');
    const program = await stranger.fetch(`${stack.edgeUrl}/api/auth/callback${query}`, { headers: { accept: 'application/json' } });
    assert.equal(program.json().error, 'ERR_CALLBACK_HANDLER_FAILURE');
  }
});

test('a callback replayed leads a person on who is signed in, is 400 for others, and the session stays', async () => {
  const person = new Client();
  const callback = await person.authorize(stack);
  assert.equal((await person.navigate(callback)).status, 302);
  const cookie = person.sessionCookie(stack);
  assert.equal((await person.navigate(callback)).status, 302);
  assert.equal((await new Client().navigate(callback)).status, 400);
  assert.deepEqual(person.sessionCookie(stack), cookie);
  assert.equal((await person.me(stack)).status, 200);
});

test('a callback taken to another browser is 400 there', async () => {
  const person = new Client();
  const callback = await person.authorize(stack);
  assert.equal((await new Client().navigate(callback)).status, 400);
  assert.equal((await person.navigate(callback)).status, 302, 'and still good in the browser it belongs to');
});

test('two tabs sign in at once and each lands where it wanted to, in either order', async () => {
  const person = new Client();
  const first = await person.authorize(stack, { login: '/api/auth/login?returnTo=/one' });
  const second = await person.authorize(stack, { login: '/api/auth/login?returnTo=/two' });
  assert.match((await person.navigate(second)).headers.get('location'), /\/two$/);
  assert.match((await person.navigate(first)).headers.get('location'), /\/one$/);
});

test('a hundred abandoned sign-ins do not block the browser', async () => {
  const person = new Client();
  for (let count = 0; count < 100; count += 1) {
    await person.navigate(`${stack.edgeUrl}/api/auth/login?returnTo=/${'x'.repeat(count * 9)}`);
    const size = [...person.cookies(stack.edgeUrl)].reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    assert.ok(size < 4000, `${size} bytes after ${count + 1}`);
  }
  const cookies = [...person.cookies(stack.edgeUrl).keys()];
  assert.ok(cookies.length >= 2, 'two always fit');
});

test('cookies forged, cut, doubled or swollen count as none and cost no session', async () => {
  const person = new Client();
  await person.signIn(stack);
  const [name, value] = person.sessionCookie(stack);
  const [id, signature] = value.split('.');
  const swapped = id.replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
  for (const cookie of [`${name}=${swapped}.${signature}`, `${name}=${id}`, `${name}=${id}.`, `${name}=${value.slice(0, -2)}`, `${name}=${value}x`, `${name}=${id.toUpperCase()}.${signature}`,
    `${name}=${value}; ${name}=${value}`, `${name}=${'a'.repeat(7000)}`, `${name}=`, `${name}=%00`, `${name}=${'.'.repeat(100)}`]) {
    const answer = await request(`${stack.edgeUrl}/api/auth/me`, { headers: { cookie } });
    assert.equal(answer.status, 204, cookie.slice(0, 90));
    assert.deepEqual(answer.headers.getSetCookie(), []);
  }
  assert.equal((await person.me(stack)).status, 200);
});

test('a prefetch or HEAD starts nothing, a fetch gets a URL to navigate to', async () => {
  const stranger = new Client();
  for (const [method, headers] of [['GET', { purpose: 'prefetch' }], ['GET', { 'sec-purpose': 'prefetch;prerender' }], ['GET', { 'x-moz': 'prefetch' }], ['HEAD', {}]]) {
    for (const action of ['login', 'logout']) {
      const answer = await stranger.navigate(`${stack.edgeUrl}/api/auth/${action}`, { method, headers });
      assert.equal(answer.status, 204, `${method} ${action} ${JSON.stringify(headers)}`);
      assert.deepEqual(answer.headers.getSetCookie(), []);
    }
  }
  const program = await stranger.fetch(`${stack.edgeUrl}/api/auth/login`, { headers: { accept: 'application/json', 'sec-fetch-mode': 'cors' } });
  assert.equal(program.status, 401);
  assert.equal(program.json().error, 'login_required');
  assert.match(program.json().login_url, /\/api\/auth\/login/);
});

test('a page guard sends people to sign in and back; programs get the 401 body', async () => {
  const stranger = new Client();
  const page = await stranger.navigate(`${stack.edgeUrl}/account?a=1&b=%2F%26`);
  assert.ok([302, 307].includes(page.status));
  const login = new URL(page.headers.get('location'), stack.edgeUrl);
  assert.equal(login.pathname, '/api/auth/login');
  assert.equal(login.searchParams.get('returnTo'), '/account?a=1&b=%2F%26');
  const landed = await stranger.signIn(stack, { login: login.href });
  assert.equal(landed.headers.get('location'), `${stack.edgeUrl}/account?a=1&b=%2F%26`);

  const program = await new Client().fetch(`${stack.edgeUrl}/account`, { headers: { 'sec-fetch-mode': 'cors', accept: '*/*' } });
  assert.equal(program.status, 401);
  assert.equal(program.text, UNAUTHORIZED);
});

// conformance: B-053
test('another site can not sign a person out', async () => {
  const person = new Client();
  await person.signIn(stack);
  const logout = `${stack.edgeUrl}/api/auth/logout`;
  const image = await person.fetch(logout, { headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' } });
  assert.equal(image.status, 403);
  const link = await person.navigate(logout, { headers: { 'sec-fetch-site': 'cross-site' } });
  assert.equal(link.status, 200, 'a link from another site asks first');
  assert.match(link.text, /csrf_token/);
  const form = await person.navigate(logout, { method: 'POST', body: new URLSearchParams({}), headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' } });
  assert.equal(form.status, 403);
  assert.equal((await person.me(stack)).status, 200);

  const token = /name="csrf_token"[^>]*value="([^"]+)"|value="([^"]+)"[^>]*name="csrf_token"/.exec(link.text);
  const confirmed = await person.navigate(logout, {
    method: 'POST',
    body: new URLSearchParams({ csrf_token: token[1] ?? token[2] }),
    headers: { 'sec-fetch-site': 'same-origin', origin: stack.edgeUrl },
  });
  assert.equal(confirmed.status, 303);
  assert.equal((await person.me(stack)).status, 204);
});

// conformance: B-041 B-020
test('the browser never sees a token', async () => {
  const person = new Client();
  await person.signIn(stack);
  await person.me(stack);
  await person.me(stack, '/api/auth/me?refetch=true');
  await person.fetch(`${stack.edgeUrl}/api/auth/status`);
  await person.fetch(`${stack.edgeUrl}/api/auth/check`);
  for (const seen of person.seen.filter((text) => text.startsWith(stack.edgeUrl))) {
    assert.doesNotMatch(seen, /"?(access|refresh|id)_token"?\s*[:=]/);
    // The sign-out at the provider carries an id_token_hint by design; nothing else may look like a JWT.
    assert.doesNotMatch(seen, /eyJ[\w-]+\.eyJ[\w-]+\./);
  }
});

test('status says what is left and check answers a proxy', async () => {
  const person = new Client();
  assert.deepEqual((await person.fetch(`${stack.edgeUrl}/api/auth/status`)).json(), { state: 'signed_out' });
  const refused = await person.fetch(`${stack.edgeUrl}/api/auth/check`);
  assert.equal(refused.status, 401);
  await person.signIn(stack);
  const status = (await person.fetch(`${stack.edgeUrl}/api/auth/status`)).json();
  assert.equal(status.state, 'active');
  assert.ok(status.expires_in > 86_000 && status.expires_in <= 86_400, `${status.expires_in}`);
  assert.ok(status.absolute_expires_in > 604_000 && status.absolute_expires_in <= 604_800, `${status.absolute_expires_in}`);
  const check = await person.fetch(`${stack.edgeUrl}/api/auth/check`);
  assert.equal(check.status, 200);
  assert.equal(check.headers.get('x-auth-subject'), (await person.me(stack)).json().sub);
  assert.match(check.headers.get('x-auth-session'), /^[0-9a-f]{32}$/);
});

test('too many sign-ins from one address are put off, and other routes still answer', async (t) => {
  const limited = await startStack({ edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '5' } });
  t.after(() => limited.stop());
  const person = new Client();
  const statuses = [];
  for (let count = 0; count < 7; count += 1) {
    // An address somebody claims to come from is not believed: no proxy is trusted here.
    const answer = await person.navigate(`${limited.edgeUrl}/api/auth/login`, { headers: { 'x-forwarded-for': `203.0.113.${count}` } });
    statuses.push(answer.status);
    if (answer.status === 429) assert.ok(Number(answer.headers.get('retry-after')) > 0);
  }
  assert.deepEqual(statuses, [302, 302, 302, 302, 302, 429, 429]);
  assert.equal((await person.me(limited)).status, 204);
});

test('signing out at the provider ends, back-channel, the session in every browser', async () => {
  const laptop = new Client();
  await laptop.signIn(stack);
  // A second browser in the same provider session: it signs in without a password.
  const tablet = new Client();
  tablet.jars.set(stack.issuer, new Map(laptop.cookies(stack.issuer)));
  await tablet.signIn(stack);
  assert.equal((await tablet.me(stack)).status, 200);
  // The same person with a session of its own at the provider: the logout token names the other one's.
  const desk = new Client();
  await desk.signIn(stack);

  const out = await laptop.navigate(`${stack.edgeUrl}/api/auth/logout`);
  const page = await laptop.follow(out.headers.get('location'));
  const [, xsrf] = /name="xsrf" value="([^"]+)"/.exec(page.text);
  const back = await laptop.navigate(`${stack.issuer}/session/end/confirm`, { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) });
  assert.ok(back.headers.get('location').startsWith(stack.edgeUrl), 'the provider sends the browser back');
  await until(15_000, async () => (await tablet.me(stack)).status === 204, () => 'the other browser is still signed in');
  assert.equal((await desk.me(stack)).status, 200, 'another session of the same person stays');
});
