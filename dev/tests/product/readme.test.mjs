// Runs the steps that README.md and the guide for Kubernetes tell a newcomer to write: the lines of "Run it yourself"
// word for word, and the route tables. Replaces only the provider, the addresses of upstreams, and ports.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

import { ACCOUNTS } from '../../idp/lib/accounts.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { ROOT, binary } from '../../stack.mjs';
import { Client } from './client.mjs';

const READY_MS = 60_000; // debug programs on a busy machine
const DOCUMENTS = ['README.md', 'docs/integrations/applications.md', 'docs/kubernetes/protecting-applications.md'];
const CLIENT_SECRET = 'a client secret of thirty-two or more characters';

/** The fenced blocks of a document in this language. */
function blocks(document, language) {
  const text = readFileSync(join(ROOT, document), 'utf8');
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter((block) => block[1] === language).map((block) => block[2]);
}

/** The route table of a document: its first block with rules. */
const routeTables = (document) => blocks(document, 'toml').filter((block) => block.includes('[[route]]'));

const folder = mkdtempSync(join(tmpdir(), 'vestibule-readme-'));
const at = (name) => join(folder, name);
const path = [dirname(binary('auth-edge')), process.env.PATH].join(delimiter);
const env = { PATH: path, HOME: folder };
const seen = [];
const upstream = http.createServer((request, response) => {
  seen.push(request);
  response.end('upstream');
});
let running;
let provider;
let stack;

before(async () => {
  const port = Object.fromEntries(await Promise.all(['EDGE_LISTEN', 'EDGE_ADMIN_LISTEN', 'SESSION_LISTEN', 'SESSION_ADMIN_LISTEN', 'idp']
    .map(async (name) => [name, await freePort()])));
  const local = (name) => `127.0.0.1:${port[name]}`;
  const edgeUrl = `http://${local('EDGE_LISTEN')}`;
  stack = { edgeUrl, issuer: `http://${local('idp')}`, accounts: ACCOUNTS };
  provider = new Child('idp', process.execPath, [
    join(ROOT, 'dev/idp/server.mjs'), '--port', String(port.idp), '--client-secret', CLIENT_SECRET,
    '--redirect-uri', `${edgeUrl}/api/auth/callback`, '--post-logout-redirect-uri', `${edgeUrl}/`,
  ]);
  await provider.firstLine;
  await new Promise((resolve) => { upstream.listen(0, '127.0.0.1', resolve); });

  const table = routeTables('README.md')[0].replaceAll(/"http:\/\/[^"]+"/g, `"http://127.0.0.1:${upstream.address().port}"`);
  writeFileSync(at('routes.toml'), table);
  symlinkSync(join(ROOT, 'web'), at('web'));
  const [settings] = blocks('README.md', 'sh').filter((block) => block.includes('OIDC_ISSUER_URL='));
  const own = {
    EDGE_BASE_URL: edgeUrl,
    OIDC_ISSUER_URL: stack.issuer,
    OIDC_CLIENT_ID: 'vestibule-dev',
    EDGE_SESSION_SVC_URL: `http://${local('SESSION_LISTEN')}`,
    ...Object.fromEntries(Object.keys(port).filter((name) => name !== 'idp').map((name) => [name, local(name)])),
  };
  const lines = Object.entries(own).map(([name, value]) => `${name}=${value}\n`).join('');
  writeFileSync(at('settings.env'), settings + lines);
  writeFileSync(at('client-secret'), `${CLIENT_SECRET}\n`);

  const [script] = blocks('README.md', 'bash').filter((block) => block.includes('auth-edge'));
  assert.equal(script.trimEnd().split('\n').length, 5, 'five lines');
  running = new Child('readme', 'bash', ['-c', script], { cwd: folder, env });
  await until(READY_MS, async () => {
    assert.equal(running.ended, undefined, running.tail());
    return (await probe(`http://${local('EDGE_ADMIN_LISTEN')}/readyz`)).status === 200;
  }, () => `the edge is not ready:\n${running.tail()}`);
});
after(async () => {
  await running?.stop('SIGKILL');
  await provider?.stop();
  upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the five lines make secrets that only their user reads, and have nothing to warn of', () => {
  for (const name of ['edge-secret', 'session-key', 'sessions.redb']) assert.equal(statSync(at(name)).mode & 0o077, 0, name);
  for (const name of ['edge-secret', 'session-key']) assert.match(readFileSync(at(name), 'utf8'), /^[0-9a-f]{64}\n$/);
  assert.equal(running.output.match(/configuration ok/g).length, 2);
  assert.doesNotMatch(running.output, /warning/i, running.output);
});

test('a visitor gets the start page with all it loads, and a person signs in, works and signs out', async () => {
  const visitor = new Client();
  const page = await visitor.navigate(`${stack.edgeUrl}/`);
  assert.equal(page.status, 200);
  const loaded = [...page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map((match) => match[1]);
  assert.ok(loaded.some((address) => address.startsWith('/assets/')), page.text);
  for (const address of loaded) assert.equal((await visitor.fetch(`${stack.edgeUrl}${address}`)).status, 200, address);
  assert.equal((await visitor.navigate(`${stack.edgeUrl}/account`)).status, 307);
  assert.equal((await visitor.fetch(`${stack.edgeUrl}/api/orders/7`)).status, 401);
  assert.equal(seen.length, 0);

  const person = new Client();
  const landed = await person.signIn(stack, { login: '/api/auth/login?returnTo=/account' });
  assert.equal(landed.headers.get('location'), `${stack.edgeUrl}/account`);
  assert.equal((await person.navigate(`${stack.edgeUrl}/account`)).status, 200);
  assert.equal((await person.fetch(`${stack.edgeUrl}/api/orders/7`)).text, 'upstream');
  assert.match(seen.at(-1).headers.authorization, /^Bearer \S+$/);
  assert.equal((await person.navigate(`${stack.edgeUrl}/wiki/page`)).text, 'upstream');
  const { preferred_username: name } = (await person.me(stack)).json();
  assert.equal(seen.at(-1).headers['remote-user'], name);
  assert.equal((await person.navigate(`${stack.edgeUrl}/api/auth/logout`)).status, 302);
  assert.equal((await person.me(stack)).status, 204);
});

test('Ctrl-C stops both programs', async () => {
  running.signal('SIGINT');
  const ended = await running.exited;
  assert.equal(ended.signal, null, running.tail());
  assert.equal(running.output.match(/"message":"stopped"|stopped/g)?.length, 2, running.tail());
});

for (const document of DOCUMENTS) {
  test(`each route table of ${document} is one the edge takes`, () => {
    const [table, key] = [at('table.toml'), at('assertions.pem')];
    writeFileSync(key, generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const settings = { ...env, EDGE_UPSTREAM_JWT_KEY_FILE: key, EDGE_BASE_URL: 'https://app.example', EDGE_SECRET: '0123456789abcdef0123456789abcdef', EDGE_ROUTES: table, OIDC_ISSUER_URL: 'https://op.example', OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: CLIENT_SECRET };
    const tables = routeTables(document);
    assert.ok(tables.length > 0);
    for (const text of tables) {
      writeFileSync(table, text);
      const checked = spawnSync(binary('auth-edge'), ['--check-config'], { cwd: folder, env: settings, encoding: 'utf8' });
      assert.equal(checked.status, 0, `${text}${checked.stderr}`);
      assert.equal(checked.stderr, '');
    }
  });
}
