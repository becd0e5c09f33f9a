// The program `vestibule` as a newcomer starts it, with a real provider and an application; then with the addresses of
// oauth2-proxy, converted from its configuration, with Redis, behind nginx as its users configure it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { ACCOUNTS } from '../../idp/lib/accounts.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { ROOT, binary } from '../../stack.mjs';
import { Client } from './client.mjs';

const WAIT_MS = 60_000;
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'vestibule-one-'));
const seen = [];
const application = http.createServer((request, response) => {
  seen.push(request.headers);
  response.setHeader('content-type', 'text/plain');
  response.end(`application ${request.url}`);
});
const children = [];
let upstream;
let issuer;
const ports = {};

before(async () => {
  await new Promise((resolve) => { application.listen(0, '127.0.0.1', resolve); });
  upstream = `http://127.0.0.1:${application.address().port}`;
  for (const name of ['idp', 'one', 'admin', 'aliases', 'nginx', 'redis']) ports[name] = await freePort();
  writeFileSync(join(folder, 'client-secret'), 'a secret of this test, thirty-two characters', { mode: 0o600 });
  const url = (name) => `http://127.0.0.1:${ports[name]}`;
  issuer = url('idp');
  const callbacks = [`${url('one')}/api/auth/callback`, `${url('nginx')}/oauth2/callback`];
  const args = ['--port', String(ports.idp), '--client-secret-file', join(folder, 'client-secret'), ...callbacks.flatMap((uri) => ['--redirect-uri', uri])];
  args.push('--post-logout-redirect-uri', `${url('one')}/`, '--post-logout-redirect-uri', `${url('nginx')}/`);
  const idp = new Child('idp', process.execPath, [join(ROOT, 'dev/idp/server.mjs'), ...args]);
  children.push(idp);
  await until(WAIT_MS, async () => (await probe(`${issuer}/.well-known/openid-configuration`)).status === 200, () => idp.tail());
});
after(async () => {
  for (const child of children.reverse()) await child.stop();
  application.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the program with these flags, as on a command line. */
function start(name, flags) {
  const provider = ['--issuer-url', issuer, '--client-id', 'vestibule-dev', '--client-secret-file', join(folder, 'client-secret')];
  const where = ['--listen', `127.0.0.1:${ports[name]}`, '--admin-listen', `127.0.0.1:${ports.admin}`];
  return started([...provider, ...where, ...flags], {});
}

async function started(args, env) {
  const child = new Child('vestibule', binary('vestibule'), args, { env: { PATH: process.env.PATH, ...env }, cwd: folder });
  children.push(child);
  await until(WAIT_MS, async () => {
    if (child.ended) throw new Error(child.tail());
    return (await probe(`http://127.0.0.1:${ports.admin}/readyz`)).status === 200;
  }, () => child.tail());
  return child;
}

test('one command guards an application: a user signs in, and it receives who that is', async () => {
  const stack = { edgeUrl: `http://127.0.0.1:${ports.one}`, accounts: ACCOUNTS };
  const flags = ['--upstream', upstream, '--email-domain', 'example.test'];
  const child = await start('one', flags);
  const client = new Client();
  const redirect = await client.navigate(`${stack.edgeUrl}/orders?page=2`);
  assert.equal(redirect.status, 307);
  assert.deepEqual(seen, []);
  const back = await client.signIn(stack, { login: redirect.headers.get('location') });
  assert.equal(back.headers.get('location'), `${stack.edgeUrl}/orders?page=2`);
  const page = await client.navigate(`${stack.edgeUrl}/orders?page=2`, { headers: { 'X-Forwarded-Email': 'admin@example.test', 'X-Forwarded-Groups': 'admins' } });
  assert.equal(page.text, 'application /orders?page=2');
  const [headers] = seen.splice(0);
  const { sub, email, preferred_username: name } = ACCOUNTS[0];
  assert.deepEqual(['user', 'email', 'preferred-username', 'groups'].map((claim) => headers[`x-forwarded-${claim}`]), [sub, email, name, undefined]);
  assert.equal(headers.cookie, undefined);
  const account = await client.navigate(`${stack.edgeUrl}/vestibule/account`);
  const [script] = /\/vestibule\/assets\/index-[^"]+\.js/.exec(account.text) ?? [];
  assert.equal((await client.fetch(`${stack.edgeUrl}${script}`)).status, 200, account.text);
  assert.deepEqual(seen.splice(0), [], 'the account pages are part of the program');
  const metrics = await probe(`http://127.0.0.1:${ports.admin}/metrics`);
  assert.match(metrics.body, /^vestibule_build_info\{program="vestibule"/m);
  assert.match(metrics.body, /service="session-svc"/);

  for (const secret of ['edge-secret', 'session-key']) assert.equal(statSync(join(folder, 'vestibule-data', secret)).mode & 0o777, 0o600);
  assert.equal(statSync(join(folder, 'vestibule-data')).mode & 0o777, 0o700);
  await child.stop();
  await start('one', flags);
  assert.equal((await client.me(stack)).json().email, email, 'a restart ends no session');
});

test('who has no address of the domain gets 403, and the page offers another account', async () => {
  await children.pop().stop();
  const stack = { edgeUrl: `http://127.0.0.1:${ports.one}`, accounts: ACCOUNTS };
  const child = await start('one', ['--upstream', upstream, '--email-domain', 'elsewhere.test', '--data-dir', 'other-data']);
  const client = new Client();
  await client.signIn(stack);
  const page = await client.navigate(`${stack.edgeUrl}/orders`);
  assert.equal(page.status, 403);
  assert.match(page.text, /prompt=login/);
  assert.deepEqual(seen, []);
  await child.stop();
  children.pop();
});

test('a client without a secret authenticates by the assertion in a file, read again for each request', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(join(folder, 'jwks.json'), JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', kid: 'one', use: 'sig' }] }));
  const [idpPort, edgePort, adminPort] = [await freePort(), await freePort(), await freePort()];
  const stack = { edgeUrl: `http://127.0.0.1:${edgePort}`, accounts: ACCOUNTS };
  const keyed = `http://127.0.0.1:${idpPort}`;
  const args = ['--port', String(idpPort), '--client-auth', 'private_key_jwt', '--client-jwks', join(folder, 'jwks.json'), '--redirect-uri', `${stack.edgeUrl}/api/auth/callback`];
  const idp = new Child('keyed-idp', process.execPath, [join(ROOT, 'dev/idp/server.mjs'), ...args]);
  children.push(idp);
  await until(WAIT_MS, async () => (await probe(`${keyed}/.well-known/openid-configuration`)).status === 200, () => idp.tail());
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const write = (seconds) => {
    const now = Math.floor(Date.now() / 1000);
    const signed = `${part({ alg: 'ES256', kid: 'one' })}.${part({ iss: 'vestibule-dev', sub: 'vestibule-dev', aud: keyed, jti: randomUUID(), iat: now, exp: now + seconds })}`;
    writeFileSync(join(folder, 'assertion'), `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}\n`);
  };
  write(60);
  const flags = ['--upstream', upstream, '--issuer-url', keyed, '--client-id', 'vestibule-dev', '--client-assertion-file', join(folder, 'assertion'), '--par', 'off', '--data-dir', 'keyed-data', '--listen', `127.0.0.1:${edgePort}`, '--admin-listen', `127.0.0.1:${adminPort}`];
  const child = new Child('vestibule', binary('vestibule'), flags, { env: { PATH: process.env.PATH }, cwd: folder });
  children.push(child);
  await until(WAIT_MS, async () => (await probe(`http://127.0.0.1:${adminPort}/readyz`)).status === 200, () => child.tail());
  await new Client().signIn(stack);
  write(60);
  await new Client().signIn(stack);
  write(-5);
  const late = new Client();
  const failed = await late.navigate(await late.authorize(stack));
  assert.equal(failed.status, 400);
  await until(WAIT_MS, () => /client assertion in .*assertion has expired/.test(child.output), () => child.tail());
  write(60);
  await late.signIn(stack);
});

test('a start with contradicting settings names each, and starts nothing', async () => {
  const failed = await run(binary('vestibule'), ['--upstream', upstream, '--routes', 'routes.toml'], { cwd: folder, env: { PATH: process.env.PATH } }).catch((error) => error);
  assert.equal(failed.code, 78);
  for (const name of ['EDGE_UPSTREAM', 'OIDC_ISSUER_URL', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET']) assert.match(failed.stderr, new RegExp(name));
  assert.equal(failed.stderr.match(/OIDC_CLIENT_ID/g).length, 1, 'each mistake once');
});

test('a converted oauth2-proxy: nginx, the provider and the application keep their configuration', async () => {
  await children.pop().stop();
  const base = `http://127.0.0.1:${ports.nginx}`;
  const stack = { edgeUrl: base, accounts: ACCOUNTS };
  const redis = new Child('redis', 'redis-server', ['--port', String(ports.redis), '--bind', '127.0.0.1', '--save', '', '--requirepass', 'of-this-test']);
  children.push(redis);
  await until(WAIT_MS, () => /Ready to accept/.test(redis.output), () => redis.tail());
  writeFileSync(join(folder, 'oauth2-proxy.cfg'), `
    provider = "oidc"
    oidc_issuer_url = "${issuer}"
    client_id = "vestibule-dev"
    redirect_url = "${base}/oauth2/callback"
    http_address = "127.0.0.1:${ports.aliases}"
    reverse_proxy = true
    trusted_proxy_ips = ["127.0.0.1"]
    upstreams = ["static://202"]
    email_domains = ["example.test"]
    set_xauthrequest = true
    cookie_secret = "0123456789abcdef0123456789abcdef"
    cookie_expire = "12h"
    redis_connection_url = "redis://:of-this-test@127.0.0.1:${ports.redis}/1"`);
  writeFileSync(join(folder, 'flags'), `oauth2-proxy --client-secret-file=client-secret --metrics-address=127.0.0.1:${ports.admin} --skip-provider-button`);
  const { stdout: report } = await run(binary('vestibule'), ['convert', 'oauth2-proxy.cfg', 'flags'], { cwd: folder, env: { PATH: process.env.PATH } });
  assert.doesNotMatch(report, /REVIEW|missing|of-this-test/);
  const lines = readFileSync(join(folder, 'settings.env'), 'utf8').split('\n').filter((line) => line.includes('=') && !line.startsWith('#'));
  const settings = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
  await started([], { ...settings, EDGE_CHECK_AUTHORIZATION: 'true' });
  // The configuration of oauth2-proxy's manual for nginx, except for the ports.
  writeFileSync(join(folder, 'nginx.conf'), `
    daemon off; pid ${folder}/nginx.pid; error_log stderr; events {}
    http {
      access_log off;
      ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      server {
        listen 127.0.0.1:${ports.nginx};
        location /oauth2/ {
          proxy_pass http://127.0.0.1:${ports.aliases};
          proxy_set_header Host $http_host;
          proxy_set_header X-Real-IP $remote_addr;
          proxy_set_header X-Auth-Request-Redirect $request_uri;
        }
        location = /oauth2/auth {
          proxy_pass http://127.0.0.1:${ports.aliases};
          proxy_set_header Host $http_host;
          proxy_set_header X-Real-IP $remote_addr;
          proxy_set_header X-Forwarded-Uri $request_uri;
          proxy_set_header Content-Length "";
          proxy_pass_request_body off;
        }
        location / {
          auth_request /oauth2/auth;
          error_page 401 =403 /oauth2/sign_in;
          auth_request_set $user $upstream_http_x_auth_request_user;
          auth_request_set $email $upstream_http_x_auth_request_email;
          proxy_set_header X-User $user;
          proxy_set_header X-Email $email;
          proxy_pass ${upstream};
        }
        location /admins/ {
          auth_request /oauth2/admins;
          proxy_pass ${upstream};
        }
        location = /oauth2/admins {
          internal;
          proxy_pass http://127.0.0.1:${ports.aliases}/oauth2/auth?allowed_groups=admins;
          proxy_set_header Host $http_host;
          proxy_set_header Content-Length "";
          proxy_pass_request_body off;
        }
      }
    }`);
  const nginx = new Child('nginx', 'nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')]);
  children.push(nginx);
  await until(WAIT_MS, async () => (await probe(`${base}/oauth2/userinfo`)).status === 401, () => nginx.tail());

  const client = new Client();
  const closed = await client.navigate(`${base}/orders?page=2`);
  assert.equal(closed.status, 403);
  const [, link] = /href="([^"]*\/api\/auth\/login[^"]*)"/.exec(closed.text) ?? [];
  assert.ok(link, closed.text);
  assert.deepEqual(seen, []);

  const isCallback = (url) => new URL(url).pathname === '/oauth2/callback';
  const form = await client.follow(`${base}/oauth2/start?rd=%2Forders%3Fpage%3D2`);
  const body = new URLSearchParams({ email: ACCOUNTS[0].email, password: ACCOUNTS[0].password });
  const posted = await client.navigate(`${form.url}/login`, { method: 'POST', body });
  const next = new URL(posted.headers.get('location'), form.url).href;
  const { location } = isCallback(next) ? { location: next } : await client.follow(next, isCallback);
  const done = await client.navigate(location);
  assert.equal(done.headers.get('location'), `${base}/orders?page=2`);
  const page = await client.navigate(done.headers.get('location'));
  assert.equal(page.text, 'application /orders?page=2');
  const [headers] = seen.splice(0);
  assert.deepEqual([headers['x-user'], headers['x-email']], [ACCOUNTS[0].sub, ACCOUNTS[0].email]);

  const { user, email, preferredUsername } = (await client.fetch(`${base}/oauth2/userinfo`)).json();
  assert.deepEqual([user, email, preferredUsername], [ACCOUNTS[0].sub, ACCOUNTS[0].email, ACCOUNTS[0].preferred_username]);
  const own = await client.fetch(`${base}/oauth2/auth`);
  assert.deepEqual([own.status, own.headers.get('authorization')], [200, null], 'a script of the page gets no token');
  assert.equal((await client.navigate(`${base}/admins/`)).status, 403, 'the query of the check names a group');
  assert.deepEqual(seen, []);
  for (const target of ['https://evil.test/', '//evil.test', '/\\evil.test', 'javascript:alert(1)']) {
    const answer = await client.navigate(`${base}/oauth2/sign_out?rd=${encodeURIComponent(target)}`);
    assert.doesNotMatch(answer.headers.get('location') ?? '', /evil|javascript/, target);
  }
  assert.equal((await probe(`${base}/oauth2/userinfo`)).status, 401);
  assert.equal((await client.fetch(`${base}/oauth2/userinfo`)).status, 401, 'signed out');
  assert.equal((await client.fetch(`${base}/oauth2/static/`)).status, 404);
});

test('the document names the files and the package that there are', () => {
  const page = readFileSync(join(ROOT, 'docs/one-program.md'), 'utf8');
  const help = page.match(/`--[a-z-]+`/g).map((flag) => flag.slice(1, -1));
  return run(binary('vestibule'), ['--help'], { maxBuffer: 1e7 }).then(({ stdout }) => {
    for (const flag of help) assert.match(stdout, new RegExp(`${flag}\\b`), flag);
  });
});
