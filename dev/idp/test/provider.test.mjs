import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { makeCertificate } from '../../lib/certificate.mjs';
import { freePort } from '../../lib/net.mjs';
import { Browser, claimsOf, newLogin, redeem, SIGNED_OUT, signIn, startProvider, token } from './support.mjs';

test('the ID token of a sign-in carries profile, e-mail and the provider session', async (t) => {
  const idp = await startProvider(t);
  const login = await signIn(new Browser(), idp);
  assert.equal(login.callback.state, 'state-1');
  assert.equal(login.callback.iss, idp.issuer);
  const { status, body } = await redeem(idp, login);
  assert.equal(status, 200);
  const claims = claimsOf(body.id_token);
  assert.equal(claims.name, 'Ada Lovelace');
  assert.equal(claims.email, 'ada@example.test');
  assert.equal(claims.email_verified, true);
  assert.equal(claims.nonce, 'nonce-1');
  assert.ok(body.refresh_token, 'a refresh token comes without offline_access too');
  const userinfo = await (await fetch(`${idp.issuer}/me`, { headers: { authorization: `Bearer ${body.access_token}` } })).json();
  assert.equal(userinfo.sub, claims.sub);
});

test('offline_access is granted when it is asked for', async (t) => {
  const idp = await startProvider(t);
  const login = await signIn(new Browser(), idp, { scope: 'openid profile email offline_access', prompt: 'login' });
  const { body } = await redeem(idp, login);
  assert.ok(body.refresh_token);
});

test('a wrong password is told on the page and lets the person try again', async (t) => {
  const idp = await startProvider(t);
  const browser = new Browser();
  const page = await browser.follow(newLogin(idp).url, idp.issuer);
  const refused = await browser.post(`${page.url}/login`, { email: 'ada@example.test', password: '<wrong>' });
  const text = await refused.text();
  assert.equal(refused.status, 401);
  assert.match(text, /role="alert"/);
  assert.match(text, /value="ada@example\.test"/);
  assert.doesNotMatch(text, /<wrong>/);
  const accepted = await browser.post(`${page.url}/login`, { email: 'Ada@Example.test ', password: 'analytical-engine' });
  assert.equal(accepted.status, 303);
});

/** Follows what the browser does by script: forms that send themselves, and the redirects after them. */
async function followForms(browser, idp, response) {
  for (;;) {
    const location = response.headers.get('location');
    if (location) {
      const { href } = new URL(location, idp.issuer);
      if (!href.startsWith(`${idp.issuer}/`)) return new URL(href);
      response = await browser.fetch(href);
      continue;
    }
    const text = await response.text();
    const [, action] = /<form method="post" action="([^"]+)">/.exec(text);
    const fields = [...text.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
    response = await browser.post(action, fields);
  }
}

for (const prompt of ['select_account', 'login']) {
  test(`with prompt=${prompt} another account can be chosen on the sign-in page`, async (t) => {
    const idp = await startProvider(t);
    const browser = new Browser();
    await signIn(browser, idp);
    const login = newLogin(idp, { prompt });
    const page = await browser.follow(login.url, idp.issuer);
    const text = await page.response.text();
    assert.match(text, prompt === 'login' ? /You are signed in as Ada Lovelace/ : /Continue as Ada Lovelace/);
    assert.match(text, /grace@example\.test/);
    const answer = await browser.post(`${page.url}/login`, { email: 'grace@example.test', password: 'nanosecond-wire' });
    const callback = Object.fromEntries((await followForms(browser, idp, answer)).searchParams);
    const { body } = await redeem(idp, { ...login, callback });
    assert.equal(claimsOf(body.id_token).name, 'Grace Hopper');
  });
}

test('a visitor who is asked for the account can go on as the one that is signed in, without a password', async (t) => {
  const idp = await startProvider(t);
  const browser = new Browser();
  await signIn(browser, idp);
  const login = newLogin(idp, { prompt: 'select_account' });
  const page = await browser.follow(login.url, idp.issuer);
  const answer = await browser.post(`${page.url}/continue`, {});
  const callback = Object.fromEntries((await followForms(browser, idp, answer)).searchParams);
  assert.equal(claimsOf((await redeem(idp, { ...login, callback })).body.id_token).name, 'Ada Lovelace');
});

test('nothing but the question for the account is answered by going on', async (t) => {
  const idp = await startProvider(t);
  const browser = new Browser();
  await signIn(browser, idp);
  const page = await browser.follow(newLogin(idp, { prompt: 'login' }).url, idp.issuer);
  assert.equal((await browser.post(`${page.url}/continue`, {})).status, 404);
});

test('cancelling answers the client with access_denied', async (t) => {
  const idp = await startProvider(t);
  const browser = new Browser();
  const page = await browser.follow(newLogin(idp).url, idp.issuer);
  const answer = await browser.post(`${page.url}/abort`, {});
  const { location } = await browser.follow(answer.headers.get('location'), idp.issuer);
  assert.equal(new URL(location).searchParams.get('error'), 'access_denied');
});

test('a sign-in page opened in another browser is refused with a page', async (t) => {
  const idp = await startProvider(t);
  const page = await new Browser().follow(newLogin(idp).url, idp.issuer);
  const stranger = await new Browser().fetch(page.url);
  assert.equal(stranger.status, 400);
  assert.match(await stranger.text(), /no longer valid/);
});

test('refresh tokens rotate and a used one revokes the whole grant', async (t) => {
  const idp = await startProvider(t);
  const first = (await redeem(idp, await signIn(new Browser(), idp))).body;
  const second = await token(idp, { grant_type: 'refresh_token', refresh_token: first.refresh_token });
  assert.equal(second.status, 200);
  assert.notEqual(second.body.refresh_token, first.refresh_token);
  const reused = await token(idp, { grant_type: 'refresh_token', refresh_token: first.refresh_token });
  assert.equal(reused.body.error, 'invalid_grant');
  const revoked = await token(idp, { grant_type: 'refresh_token', refresh_token: second.body.refresh_token });
  assert.equal(revoked.body.error, 'invalid_grant');
});

test('a crowd that was asked for signs in, one by one, and nobody beyond it', async (t) => {
  const idp = await startProvider(t, ['--people', '2']);
  const { body } = await redeem(idp, await signIn(new Browser(), idp, { email: 'person-2@example.test', password: 'person-2-password' }));
  assert.equal(claimsOf(body.id_token).sub, 'person-2');
  for (const [email, password] of [['person-2@example.test', 'person-1-password'], ['person-3@example.test', 'person-3-password']]) {
    const browser = new Browser();
    const own = await browser.follow(newLogin(idp).url, idp.issuer);
    assert.equal((await browser.post(`${own.url}/login`, { email, password })).status, 401, email);
  }
});

test('the log tells grants and refusals by one name for each grant, and no secret', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-idp-log-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'log.jsonl');
  const idp = await startProvider(t, ['--log', file]);
  const login = await signIn(new Browser(), idp);
  const first = (await redeem(idp, login)).body;
  const second = (await token(idp, { grant_type: 'refresh_token', refresh_token: first.refresh_token })).body;
  await token(idp, { grant_type: 'refresh_token', refresh_token: first.refresh_token });
  const text = readFileSync(file, 'utf8');
  const lines = text.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ kind, grantType }) => `${kind} ${grantType}`), ['granted authorization_code', 'granted refresh_token', 'refused refresh_token']);
  assert.equal(new Set(lines.slice(0, 2).map(({ grant }) => grant)).size, 1);
  assert.deepEqual([lines[1].presented, lines[2].presented], [lines[0].refresh, lines[0].refresh]);
  assert.equal(lines[2].error, 'invalid_grant');
  for (const secret of [login.callback.code, first.access_token, first.refresh_token, second.refresh_token]) assert.ok(!text.includes(secret));
});

test('the lifetime of access tokens is as asked', async (t) => {
  const idp = await startProvider(t, ['--access-token-ttl', '7']);
  const { body } = await redeem(idp, await signIn(new Browser(), idp));
  assert.equal(body.expires_in, 7);
});

test('sign-out with an ID token ends the sign-in, back-channel too, and returns', async (t) => {
  const logoutTokens = [];
  const client = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    logoutTokens.push(new URLSearchParams(body).get('logout_token'));
    response.end();
  });
  await new Promise((resolve) => client.listen(0, '127.0.0.1', resolve));
  t.after(() => client.close());
  const idp = await startProvider(t, ['--backchannel-logout-uri', `http://127.0.0.1:${client.address().port}/backchannel`]);
  const browser = new Browser();
  const { body } = await redeem(idp, await signIn(browser, idp));

  const query = new URLSearchParams({ id_token_hint: body.id_token, post_logout_redirect_uri: SIGNED_OUT, state: 'bye' });
  const page = await (await browser.fetch(`${idp.issuer}/session/end?${query}`)).text();
  const [, xsrf] = /name="xsrf" value="([^"]+)"/.exec(page);
  const answer = await browser.post(`${idp.issuer}/session/end/confirm`, { xsrf, logout: 'yes' });
  assert.equal(answer.headers.get('location'), `${SIGNED_OUT}?state=bye`);

  const [logoutToken] = logoutTokens.map(claimsOf);
  assert.ok(claimsOf(body.id_token).sid);
  assert.equal(logoutToken.sid, claimsOf(body.id_token).sid);
  const refused = await token(idp, { grant_type: 'refresh_token', refresh_token: body.refresh_token });
  assert.equal(refused.body.error, 'invalid_grant');
});

test('keys, sign-ins and refresh tokens outlive a restart when a state file is given', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-idp-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'state.json');
  const before = await startProvider(t, [], file);
  const { body } = await redeem(before, await signIn(new Browser(), before));
  const { port } = new URL(before.issuer);
  await before.stop();
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const after = await startProvider(t, ['--port', port], file);
  assert.equal(after.client_secret, before.client_secret);
  const renewed = await token(after, { grant_type: 'refresh_token', refresh_token: body.refresh_token });
  assert.equal(renewed.status, 200);
});

test('discovery offers what the product can use', async (t) => {
  const idp = await startProvider(t);
  const metadata = await (await fetch(`${idp.issuer}/.well-known/openid-configuration`)).json();
  assert.equal(metadata.issuer, idp.issuer);
  assert.equal(metadata.authorization_response_iss_parameter_supported, true);
  assert.equal(metadata.backchannel_logout_session_supported, true);
  for (const endpoint of ['end_session_endpoint', 'revocation_endpoint', 'pushed_authorization_request_endpoint', 'userinfo_endpoint']) {
    assert.ok(metadata[endpoint].startsWith(idp.issuer), endpoint);
  }
  assert.ok(metadata.response_modes_supported.includes('form_post'));
  assert.ok(metadata.token_endpoint_auth_methods_supported.includes('private_key_jwt'));
  assert.ok(metadata.dpop_signing_alg_values_supported.includes('ES256'));
});

test('a taken port is told in a sentence', async (t) => {
  const idp = await startProvider(t);
  const { port } = new URL(idp.issuer);
  await assert.rejects(startProvider(t, ['--port', port]), new RegExp(`port ${port} on 127\\.0\\.0\\.1 is taken`));
});

test('in a container it listens on every address, speaks TLS, and has the name and the secret it is given', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-idp-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { certificate, key } = makeCertificate(folder);
  const port = await freePort();
  writeFileSync(join(folder, 'secret'), 'from-a-file\n');
  const issuer = `https://localhost:${port}`;
  const idp = await startProvider(t, [
    '--listen', '0.0.0.0', '--port', String(port), '--issuer', issuer, '--tls-cert-file', certificate, '--tls-key-file', key,
    '--client-secret-file', join(folder, 'secret'),
  ]);
  assert.deepEqual([idp.issuer, idp.client_secret], [issuer, 'from-a-file']);
  const metadata = await new Promise((resolve, reject) => {
    // another address of loopback, by the name in the certificate
    const options = { host: '127.0.0.2', port, path: '/.well-known/openid-configuration', servername: 'localhost', ca: readFileSync(certificate), headers: { host: `localhost:${port}` } };
    https.get(options, (response) => {
      let text = '';
      response.on('data', (chunk) => { text += chunk; }).on('end', () => resolve(JSON.parse(text)));
    }).on('error', reject);
  });
  assert.equal(metadata.issuer, issuer);
  assert.ok(metadata.token_endpoint.startsWith(`${issuer}/`), metadata.token_endpoint);
});

test('half a certificate is a mistake', async (t) => {
  await assert.rejects(startProvider(t, ['--tls-cert-file', '/dev/null']), /come together/);
});
