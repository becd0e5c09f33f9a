// Runs docs/integrations with the real programs from Debian and PyPI; replaces only addresses, names and ports.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { personOf } from '../../idp/lib/accounts.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';
import { configuration, Program, START, startNginx } from './proxies.mjs';

const UNAUTHORIZED = '{"error":"not_authenticated","description":"The user does not have an active session or is not authenticated"}';
const PERSON = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' };
const SPOOFED = {
  'x-auth-subject': 'admin', 'x-auth-session': 'admin', 'x-auth-assertion': 'admin',
  'x-forwarded-user': 'admin', 'x-forwarded-email': 'admin', 'x-forwarded-groups': 'admin', 'x-forwarded-preferred-username': 'admin', 'x-forwarded-access-token': 'admin',
  'remote-user': 'admin', 'remote-groups': 'admin',
  'x-forwarded-for': '6.6.6.6', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-uri': '/evil', 'x-original-url': '/evil',
};

/** Identity header names as CGI, WSGI and PHP fold them. */
const FOLDED = [
  'Remote.User', 'remote_user', 'REMOTE_Groups', 'x.auth.subject', 'X-Auth.Session', 'X.Forwarded.User', 'X-Forwarded.Email', 'X-Forwarded-Preferred.Username',
  'x_auth_subject', 'X-AUTH_Subject', 'X_Auth-Session', 'x-auth_assertion', 'x_forwarded_user', 'X-Forwarded_Email', 'X_Forwarded-Groups', 'X-Forwarded-Preferred_Username', 'x_forwarded-access_token',
];
/** The headers that the edge accepts only from a proxy; Envoy checks its own. */
const FOR_PROXIES = [...readFileSync(join(ROOT, 'auth-edge/src/values/proxy_headers.rs'), 'utf8').split('fn is_withheld')[0].matchAll(/"([a-z0-9-]+)"/g)]
  .map(([, header]) => (header.endsWith('-') ? `${header}test` : header)).filter((header) => !header.startsWith('x-envoy-'));

/** An application may receive only those X-Auth- headers that the edge sets; clients send these in addition. */
const OTHER_IDENTITIES = ['x-auth-issuer', 'X-Auth-Client', 'X-AUTH-FOO', 'x-auth-groups', 'x-auth-request-user', 'X-Auth-Assertion', 'x-auth-session-'];
const IDENTITY = ['x-auth-issuer', 'x-auth-session', 'x-auth-subject'];

/** Ways in which an outside client may try to reach the check. */
const CHECKS = [
  '/api/auth/check', '/api/auth/check?redirect=1', '/api/auth/%63heck', '/api/auth//check', '/api/auth/./check', '/api/auth/x/../check', '/api/auth/check/', '/API/auth/check',
  '//api/auth/check', '/api/auth/check%3f', '/_check', '/_sign_in',
];

/** Paths that some programs match with "/api/auth/" and others do not; none may reach the application. */
const CONFUSING = [
  '/api/auth/../orders', '/api/auth/%2e%2e/orders', '/api/auth/..%2forders', '/api/auth/..%2f..%2forders', '/api/auth/..;/orders', '/api/auth/..%5corders', '/api/auth//../../orders',
  '//api/auth/../orders', '/api/auth%2f..%2forders', '/api/auth/%252e%252e/orders', '/API/AUTH/../orders', '/orders#/api/auth/', '/orders?/api/auth/', '/orders/%2e%2e/api/auth/../orders', '/x/../orders', '/orders%00/api/auth/',
];

/** A program that has its own tokens, and their audience. */
const [MACHINE, ORDERS] = ['a-service', 'https://orders.example.test/'];

/** The headers that the application reads, and what its requests require. */
const CHECKS_FILE = `[[check]]
guard = "page"
headers = { Remote-User = "claim:sub", Remote-Email = "claim:email", Remote-Groups = "claim:no_such_claim" }
[[check]]
path = "/finance/*"
guard = "page"
claims = { groups = "finance" }
denied_message = "Ask Fred."
[[check]]
path = "/open/*"
guard = "none"
[[check]]
path = "/open/*"
methods = ["DELETE"]
guard = "api"
[[check]]
path = "/machines/*"
guard = "api"
[check.bearer]
audience = "${ORDERS}"
[[check]]
host = "open.example"
guard = "none"
`;

/** An application that returns the request that it received. */
async function application() {
  const app = { asked: 0 };
  const server = http.createServer((asked, answer) => {
    app.asked += 1;
    answer.setHeader('set-cookie', 'theme=dark; Path=/');
    answer.end(JSON.stringify({ url: asked.url, method: asked.method, headers: asked.headers }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(app, { port: server.address().port, stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) });
}

for (const name of Object.keys(START)) {
  describe(`${name} asks the edge`, () => {
    const folder = mkdtempSync(join(tmpdir(), `vestibule-${name}-`));
    let [stack, app, program, url] = [];

    before(async () => {
      const [front, extAuthz] = [await freePort(), await freePort()];
      url = `http://127.0.0.1:${front}`;
      app = await application();
      const routes = join(folder, 'routes.toml');
      writeFileSync(routes, CHECKS_FILE);
      stack = await startStack({ routes, publicUrl: url, secondProvider: true, machineClient: MACHINE, resources: [ORDERS], edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1', EDGE_CHECK_AUTHORIZATION: 'true', EDGE_EXT_AUTHZ_LISTEN: `127.0.0.1:${extAuthz}`, EDGE_SESSION_CACHE_SECS: '0' }, sessionEnv: { SESSION_ROLL_INTERVAL: '0' } });
      const edge = Number(new URL(stack.edgeUrls[0]).port);
      program = await START[name](folder, { front, edge, extAuthz, application: app.port }).listening(front);
      // Traefik listens before it has loaded its routes.
      await until(20_000, async () => (await request(`${url}/`)).status !== 404, () => `${name} knows no way: ${program.log}`);
    });

    after(async () => {
      await program?.stop();
      await app?.stop();
      await stack?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    test('a script without a session gets 401, a person is sent to sign in and back', async () => {
      const script = await request(`${url}/orders`, { headers: { accept: 'application/json', 'sec-fetch-mode': 'cors' } });
      assert.equal(script.status, 401);
      assert.equal(script.text, UNAUTHORIZED);
      const person = await request(`${url}/orders?a=b%26c`, { headers: PERSON });
      assert.equal(person.status, 302, person.text);
      const login = new URL(person.headers.get('location'), url);
      assert.equal(login.pathname, '/api/auth/login');
      assert.equal(login.searchParams.get('returnTo'), `${url}/orders?a=b%26c`);
      const lied = await request(`${url}/orders`, { headers: { ...PERSON, ...SPOOFED } });
      assert.ok(!lied.headers.get('location').includes('evil'), lied.headers.get('location'));
    });

    test('the application learns who is signed in from the edge alone', async () => {
      const client = new Client();
      const landed = await client.signIn(stack, { login: '/api/auth/login?returnTo=/orders' });
      assert.equal(landed.headers.get('location'), `${url}/orders`);
      for (const headers of [{}, SPOOFED]) {
        const answer = await client.fetch(`${url}/orders?a=b`, { headers });
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers.get('cache-control'), 'no-store');
        const got = answer.json();
        assert.equal(got.url, '/orders?a=b');
        assert.ok(got.headers['x-auth-subject'] && got.headers['x-auth-subject'] !== 'admin', answer.text);
        assert.match(got.headers['x-auth-session'], /^[0-9a-f]+$/);
        assert.ok(!Object.values(got.headers).includes('admin'), answer.text);
      }
      const posted = await client.fetch(`${url}/orders`, { method: 'POST', body: new URLSearchParams({ amount: '1' }) });
      assert.equal(posted.json().method, 'POST');
      await client.fetch(`${url}/api/auth/logout`, { headers: PERSON });
      assert.equal((await client.fetch(`${url}/orders`, { headers: { accept: 'application/json' } })).status, 401);
    });

    test('the application gets the names it reads, and only from the edge', async () => {
      const client = new Client();
      await client.signIn(stack);
      for (const headers of [{}, { 'Remote-User': 'admin', 'remote-email': 'admin', 'Remote-Groups': 'admin' }]) {
        const got = (await client.fetch(`${url}/orders`, { headers })).json().headers;
        assert.equal(got['remote-user'], got['x-auth-subject']);
        assert.match(got['remote-email'], /^[^@]+@[^@]+$/);
        assert.equal(got['remote-groups'], undefined, 'no user has this claim');
        const open = (await client.fetch(`${url}/open/a`, { headers })).json().headers;
        assert.deepEqual(Object.keys(open).filter((name) => name.startsWith('remote-')), []);
      }
    });

    test('the application can distinguish a program from a user, and no client can fake either', async () => {
      const granted = await fetch(`${stack.issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${MACHINE}:${stack.secrets.client}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: ORDERS, scope: 'orders:read' }),
      });
      const authorization = `Bearer ${(await granted.json()).access_token}`;
      const identity = (headers) => Object.entries(headers).filter(([name]) => name.startsWith('x-auth-')).sort();
      for (const spoofed of [{}, { 'X-Auth-Client': 'admin', 'X-Auth-Session': 'admin', 'X-Auth-Subject': 'admin' }]) {
        const answer = await request(`${url}/machines/1`, { headers: { authorization, ...spoofed } });
        assert.equal(answer.status, 200, answer.text);
        assert.deepEqual(identity(answer.json().headers), [['x-auth-client', MACHINE], ['x-auth-issuer', stack.issuer], ['x-auth-subject', MACHINE]]);
        const open = await request(`${url}/open/a`, { headers: spoofed });
        assert.deepEqual(identity(open.json().headers), []);
      }
    });

    test('a rule decides by path and method who passes, and says whom to ask', async () => {
      const client = new Client();
      await client.signIn(stack);
      const before = app.asked;
      const refused = await client.fetch(`${url}/finance/1`, { headers: PERSON });
      assert.equal(refused.status, 403);
      if (name !== 'nginx') assert.ok(refused.text.includes('Ask Fred.'), refused.text);
      assert.equal(app.asked, before);
      const stranger = { headers: { accept: 'application/json', 'x-forwarded-method': 'GET' } };
      assert.equal((await request(`${url}/open/a`, stranger)).status, 200);
      assert.equal((await request(`${url}/open/a`, { ...stranger, method: 'DELETE' })).status, 401);
      assert.equal((await client.fetch(`${url}/open/a`, { method: 'DELETE' })).status, 200);
    });

    test('the host a rule is chosen by is the one the proxy has routed by', async () => {
      const before = app.asked;
      // The request line takes precedence (RFC 9112, section 3.2.2); "open.example" would be open to all clients.
      for (const [target, host] of [[`${url}/orders`, 'open.example'], [`${url}/orders`, 'open.example:80'], ['/orders', `open.example,${new URL(url).host}`]]) {
        const status = await new Promise((resolve, reject) => {
          const headers = { host, accept: 'application/json' };
          http.get({ host: '127.0.0.1', port: new URL(url).port, path: target, agent: false, headers }, (answer) => {
            answer.resume().on('end', () => resolve(answer.statusCode));
          }).on('error', reject);
        });
        assert.ok(status >= 300 || app.asked === before, `${target} ${host}: ${status}`);
        assert.equal(app.asked, before, `${target} ${host}`);
      }
      if (name === 'nginx') assert.equal((await request(`${url}/orders`, { headers: { host: 'open.example' } })).status, 404);
    });

    test('namesakes at two providers are two people to the application', async () => {
      const subjects = [];
      for (const [login, issuer, another] of [['/api/auth/login', stack.issuer, stack.otherIssuer], ['/api/auth/login?connection=other', stack.otherIssuer, stack.issuer]]) {
        const client = new Client();
        await client.signIn(stack, { login });
        for (const headers of [{}, { 'x-auth-issuer': another }, { 'X-AUTH-Issuer': another, 'x-auth-subject': 'admin' }]) {
          const got = (await client.fetch(`${url}/orders`, { headers })).json();
          assert.equal(got.headers['x-auth-issuer'], issuer);
          subjects.push(got.headers['x-auth-subject']);
        }
      }
      assert.equal(new Set(subjects).size, 1, 'the provider names them alike');
    });

    test('no other identity header of a client passes', async () => {
      const client = new Client();
      await client.signIn(stack);
      for (const header of OTHER_IDENTITIES) {
        const answer = await client.fetch(`${url}/orders`, { headers: { [header]: 'admin' } });
        assert.equal(answer.status, 200, `${header}: ${answer.text}`);
        const arrived = Object.keys(answer.json().headers).filter((arrived) => arrived.startsWith('x-auth'));
        assert.deepEqual(arrived.sort(), IDENTITY, header);
        assert.ok(!answer.text.includes('admin'), `${header}: ${answer.text}`);
      }
    });

    test('no client reaches the check, which would give its token to a script', async () => {
      const client = new Client();
      await client.signIn(stack);
      const told = { 'x-forwarded-uri': '/orders', 'x-original-url': '/orders', 'x-forwarded-host': new URL(url).host, 'x-forwarded-proto': 'http' };
      const [[name, value]] = [client.sessionCookie(stack)];
      for (const path of CHECKS) {
        for (const more of [{}, told]) {
          const answer = await new Promise((resolve, reject) => {
            const headers = { ...more, cookie: `${name}=${value}`, accept: 'application/json' };
            http.get({ host: '127.0.0.1', port: new URL(url).port, path, agent: false, headers }, resolve).on('error', reject);
          });
          answer.resume();
          assert.deepEqual(Object.keys(answer.headers).filter((header) => header.startsWith('x-auth') || header === 'authorization'), [], path);
          if (path.startsWith('/api/auth/check')) assert.equal(answer.statusCode, 404, path);
        }
      }
    });

    test('an identity without a session does not count', async () => {
      const before = app.asked;
      assert.equal((await request(`${url}/orders`, { headers: { ...SPOOFED, accept: 'application/json' } })).status, 401);
      assert.equal(app.asked, before);
    });

    test('no header of a client passes that only a proxy may send', async () => {
      const client = new Client();
      await client.signIn(stack);
      assert.ok(FOR_PROXIES.length > 40);
      const headers = Object.fromEntries([...FOR_PROXIES, 'x-ms-client-principal-name', 'x-harmless'].map((header) => [header, 'spoofed']));
      const answer = await client.fetch(`${url}/orders`, { headers });
      assert.equal(answer.status, 200, answer.text);
      const passed = Object.entries(answer.json().headers).filter(([, value]) => value.includes('spoofed')).map(([header]) => header);
      assert.deepEqual(passed, ['x-harmless']);
    });

    test('no identity comes by another spelling of its name', async () => {
      const client = new Client();
      await client.signIn(stack);
      for (const header of FOLDED) {
        const answer = await client.fetch(`${url}/orders`, { headers: { [header]: 'admin' } });
        assert.equal(answer.status, name === 'envoy' && header.includes('_') ? 400 : 200, `${header}: ${answer.text}`);
        assert.ok(!answer.text.includes('admin'), `${header}: ${answer.text}`);
      }
    });

    test('no spelling of a path brings a stranger to the application', async () => {
      const before = app.asked;
      for (const path of CONFUSING) {
        const status = await new Promise((resolve, reject) => {
          const asked = http.request({ host: '127.0.0.1', port: new URL(url).port, path, agent: false, headers: { accept: 'application/json' } }, (answer) => {
            answer.resume().on('end', () => resolve(answer.statusCode));
          });
          asked.on('error', reject).end();
        });
        assert.ok(status >= 300, `${path}: ${status}`);
        assert.equal(app.asked, before, path);
      }
    });

    test('the renewed cookie reaches the browser', async () => {
      const client = new Client();
      await client.signIn(stack);
      const answer = await client.fetch(`${url}/orders`);
      const names = answer.headers.getSetCookie().map((line) => line.split('=')[0]);
      assert.deepEqual(names.sort(), ['session', 'theme'], 'each in a line of its own');
    });

    test('without edge or session service no user gets in and no user is signed out', async () => {
      const client = new Client();
      await client.signIn(stack);
      const before = app.asked;
      const expected = name === 'nginx' ? 500 : 503;
      for (const down of ['session', 'edge']) {
        await stack.kill(down);
        const answer = await client.fetch(`${url}/orders`, { headers: PERSON });
        if (down === 'session') assert.equal(answer.status, expected, answer.text);
        else assert.ok(answer.status >= 500, `${answer.status}`);
        assert.deepEqual(answer.headers.getSetCookie(), []);
        assert.equal(app.asked, before);
        await stack.start(down);
      }
      await until(20_000, async () => (await client.fetch(`${url}/orders`)).status === 200, () => 'it never recovers');
    });
  });
}

describe('nginx with its default buffers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-buffers-'));
  let [stack, app, nginx, url] = [];

  before(async () => {
    const front = await freePort();
    url = `http://127.0.0.1:${front}`;
    app = await application();
    const routes = join(folder, 'routes.toml');
    writeFileSync(routes, '[[check]]\nguard = "page"\nheaders = { Remote-User = "claim:sub", Remote-Groups = "claim:groups" }\n');
    stack = await startStack({ routes, publicUrl: url, people: 2, groups: 100, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1', EDGE_CHECK_AUTHORIZATION: 'true' }, sessionEnv: { SESSION_ROLL_INTERVAL: '0' } });
    const ports = { front, edge: Number(new URL(stack.edgeUrls[0]).port), application: app.port };
    nginx = await startNginx(folder, ports, { '  proxy_buffer_size 16k;\n  proxy_buffers 8 16k;\n': '' }).listening(front);
  });

  after(async () => {
    await nginx?.stop();
    await app?.stop();
    await stack?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a person in a hundred groups signs in, browses and signs out', async () => {
    const client = new Client();
    const account = personOf(1, 100);
    const landed = await client.signIn(stack, { account, login: '/api/auth/login?returnTo=/orders' });
    assert.equal(landed.headers.get('location'), `${url}/orders`);
    assert.equal((await client.me(stack)).json().groups.length, 100);
    for (let visit = 0; visit < 3; visit += 1) {
      const page = await client.fetch(`${url}/orders`, { headers: PERSON });
      assert.equal(page.status, 200, page.text);
      const got = page.json().headers;
      assert.equal(got['remote-user'], account.sub);
      assert.equal(got['remote-groups'], undefined, 'whole or not at all');
    }
    await until(20_000, () => stack.logs('edge').includes('remote-groups'), () => `the log does not name what is left out:\n${stack.logs('edge')}`);
    for (let tab = 0; tab < 10; tab += 1) await client.navigate(`${url}/api/auth/login?returnTo=/tabs/${tab}`);
    const out = await client.navigate(`${url}/api/auth/logout`);
    assert.equal(out.status, 302, out.text);
    const end = new URL(out.headers.get('location'));
    assert.equal(end.origin, stack.issuer);
    assert.equal(end.searchParams.get('id_token_hint'), null);
    assert.ok(end.searchParams.get('client_id') && end.searchParams.get('logout_hint'), end.href);
    assert.deepEqual([...client.cookies(url).keys()], ['theme'], 'no session cookie stays');
    assert.equal((await client.fetch(`${url}/orders`, { headers: { accept: 'application/json' } })).status, 401);
    assert.doesNotMatch(nginx.log, /too big header/);
  });
});

describe('nginx behind the edge, HAProxy before it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-behind-'));
  let [stack, nginx, haproxy, url] = [];

  before(async () => {
    const [behind, front] = [await freePort(), await freePort()];
    url = `http://127.0.0.1:${front}`;
    const file = configuration(folder, 'nginx-upstream.conf', { '127.0.0.1:9080': `127.0.0.1:${behind}`, '/run/nginx-vestibule-upstream.pid': join(folder, 'nginx.pid') });
    nginx = await new Program('nginx', ['-p', folder, '-e', 'stderr', '-c', file]).listening(behind);
    const routes = join(folder, 'routes.toml');
    writeFileSync(routes, `[[route]]\npath = "/orders/*"\nguard = "api"\nupstream = "http://127.0.0.1:${behind}"\n[[route]]\npath = "/*"\nguard = "none"\nupstream = "http://127.0.0.1:${behind}"\n`);
    stack = await startStack({ routes, publicUrl: url, secondProvider: true, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1', EDGE_CHECK_AUTHORIZATION: 'true' } });
    const balanced = configuration(folder, 'haproxy.cfg', {
      '127.0.0.1:8080': `127.0.0.1:${front}`, '127.0.0.1:3000': `127.0.0.1:${new URL(stack.edgeUrls[0]).port}`, 'port 9300': `port ${new URL(stack.adminUrls.edge).port}`,
    });
    haproxy = await new Program('haproxy', ['-db', '-f', balanced]).listening(front);
    await until(20_000, async () => (await request(`${url}/`)).status === 200, () => `HAProxy finds no edge: ${haproxy.log}`);
  });

  after(async () => {
    await haproxy?.stop();
    await nginx?.stop();
    await stack?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('the guard stands before nginx, which gets the identity and not our cookie', async () => {
    assert.equal((await request(`${url}/orders/1`, { headers: SPOOFED })).status, 401);
    const client = new Client();
    await client.signIn(stack);
    client.cookies(url).set('theme', 'dark');
    const answer = await client.fetch(`${url}/orders/1?a=b`, { headers: SPOOFED });
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.text, /^subject=(?!admin)\S+ session=[0-9a-f]+ issuer=http\S+ cookie=theme=dark uri=\/orders\/1\?a=b$/);
    assert.ok(answer.text.includes(` issuer=${stack.issuer} `), answer.text);
    const there = new Client();
    await there.signIn(stack, { login: '/api/auth/login?connection=other' });
    const namesake = await there.fetch(`${url}/orders/1`, { headers: { 'x-auth-issuer': stack.issuer } });
    assert.ok(namesake.text.includes(` issuer=${stack.otherIssuer} `), namesake.text);
  });

  test('no client reaches the check', async () => {
    const client = new Client();
    await client.signIn(stack);
    for (const headers of [{}, { 'x-forwarded-uri': '/orders', 'x-original-url': '/orders' }]) {
      const answer = await client.fetch(`${url}/api/auth/check`, { headers });
      assert.equal(answer.status, 404);
      assert.equal(answer.headers.get('authorization'), null);
    }
  });

  test('one connection after another is used and none is met closed', async () => {
    const statuses = await Promise.all(Array.from({ length: 200 }, () => request(`${url}/`).then(({ status }) => status)));
    assert.deepEqual([...new Set(statuses)], [200]);
  });
});
