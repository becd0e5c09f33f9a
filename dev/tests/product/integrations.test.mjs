// The configurations in docs/integrations with the real programs from Debian: only addresses and ports are replaced.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';

const UNAUTHORIZED = '{"error":"not_authenticated","description":"The user does not have an active session or is not authenticated"}';
const PERSON = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' };
const SPOOFED = { 'x-auth-subject': 'admin', 'x-auth-session': 'admin', 'x-auth-assertion': 'admin', 'x-forwarded-user': 'admin', 'x-forwarded-for': '6.6.6.6', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };

/** A program that runs until it is stopped by its id. */
class Program {
  constructor(command, args, options = {}) {
    this.log = '';
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.setEncoding('utf8').on('data', (text) => { this.log += text; });
    this.ended = new Promise((resolve) => { this.child.once('close', resolve).once('error', resolve); });
  }

  /** Waits until something listens. */
  async listening(port) {
    const connects = () => new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
    });
    await until(20_000, connects, () => `nothing listens on ${port}: ${this.log}`);
    return this;
  }

  async stop() {
    this.child.kill('SIGTERM');
    await this.ended;
  }
}

/** A configuration of docs/integrations with these addresses and files in place of its own. */
function configuration(folder, name, replaced) {
  let text = readFileSync(join(ROOT, 'docs/integrations', name), 'utf8');
  for (const [from, to] of Object.entries(replaced)) {
    assert.ok(text.includes(from), `${name} holds ${from}`);
    text = text.replaceAll(from, to);
  }
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** An application that says what it got. */
async function application() {
  const server = http.createServer((asked, answer) => answer.end(JSON.stringify({ url: asked.url, method: asked.method, headers: asked.headers })));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: server.address().port, stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}

const START = {
  nginx: (folder, ports) => new Program('nginx', ['-p', folder, '-e', 'stderr', '-c', configuration(folder, 'nginx.conf', {
    '127.0.0.1:8080': `127.0.0.1:${ports.front}`, '127.0.0.1:3000': `127.0.0.1:${ports.edge}`, '127.0.0.1:9080': `127.0.0.1:${ports.application}`, '/run/nginx-vestibule.pid': join(folder, 'nginx.pid'),
  })]),
  caddy: (folder, ports) => new Program('caddy', ['run', '--adapter', 'caddyfile', '--config', configuration(folder, 'Caddyfile', {
    '127.0.0.1:8080': `127.0.0.1:${ports.front}`, '127.0.0.1:3000': `127.0.0.1:${ports.edge}`, '127.0.0.1:9080': `127.0.0.1:${ports.application}`,
  })], { env: { ...process.env, HOME: folder } }),
};

for (const name of Object.keys(START)) {
  describe(`${name} asks the edge`, () => {
    const folder = mkdtempSync(join(tmpdir(), `vestibule-${name}-`));
    let [stack, app, program, url] = [];

    before(async () => {
      const front = await freePort();
      url = `http://127.0.0.1:${front}`;
      app = await application();
      stack = await startStack({ publicUrl: url, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1' } });
      const edge = Number(new URL(stack.edgeUrls[0]).port);
      program = await START[name](folder, { front, edge, application: app.port }).listening(front);
    });

    after(async () => {
      await program?.stop();
      await app?.stop();
      await stack?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    test('a script without a session gets the unauthorized answer, a person is sent to sign in and back', async () => {
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

    test('somebody signed in reaches the application, which learns who it is from the edge alone', async () => {
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

    test('an identity without a session is nobody', async () => {
      assert.equal((await request(`${url}/orders`, { headers: { ...SPOOFED, accept: 'application/json' } })).status, 401);
    });
  });
}

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
    stack = await startStack({ routes, publicUrl: url, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1' } });
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
    assert.match(answer.text, /^subject=(?!admin)\S+ session=[0-9a-f]+ cookie=theme=dark uri=\/orders\/1\?a=b$/);
  });

  test('one connection after another is used and none is met closed', async () => {
    const statuses = await Promise.all(Array.from({ length: 200 }, () => request(`${url}/`).then(({ status }) => status)));
    assert.deepEqual([...new Set(statuses)], [200]);
  });
});
