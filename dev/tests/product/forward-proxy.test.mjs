// Both programs reach the provider through a real forward proxy, and only through it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Child } from '../../lib/child.mjs';
import { freePort, portTaken, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { NAVIGATION, request } from './client.mjs';
import { field, fields, invoke } from './grpc.mjs';

// This machine, under an address that does not count as loopback: loopback is reached without a proxy.
const HOST = '0.0.0.0';
const PASSWORD = 'of-the-forward-proxy';
const folder = mkdtempSync(join(tmpdir(), 'vestibule-forward-proxy-'));
const file = (name) => join(folder, name);
let [provider, issuer, proxy, proxyPort, stack] = [];

/** A provider behind TLS: where it is, and a token endpoint that refreshes. */
async function startProvider() {
  const openssl = (name, ...further) => {
    const made = ['-keyout', file(`${name}.key`), '-out', file(`${name}.pem`), '-subj', `/CN=${name}`];
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', ...made, ...further];
    assert.equal(spawnSync('openssl', args).status, 0);
  };
  openssl('authority');
  openssl('provider', '-CA', file('authority.pem'), '-CAkey', file('authority.key'), '-addext', `subjectAltName=IP:${HOST}`, '-addext', 'basicConstraints=critical,CA:FALSE');
  const server = https.createServer({ key: readFileSync(file('provider.key')), cert: readFileSync(file('provider.pem')) }, (incoming, answer) => {
    const documents = {
      '/.well-known/openid-configuration': { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys` },
      '/token': { access_token: 'a-new-one', token_type: 'Bearer', expires_in: 300 },
    };
    incoming.resume().on('end', () => answer.setHeader('content-type', 'application/json').end(JSON.stringify(documents[incoming.url] ?? {})));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  issuer = `https://${HOST}:${server.address().port}`;
  return server;
}

async function startProxy() {
  proxyPort = await freePort();
  writeFileSync(file('tinyproxy.conf'), `Port ${proxyPort}\nListen 127.0.0.1\nTimeout 60\nLogLevel Connect\nBasicAuth vestibule ${PASSWORD}\n`);
  const child = new Child('tinyproxy', 'tinyproxy', ['-d', '-c', file('tinyproxy.conf')]);
  await until(20_000, () => portTaken(proxyPort), () => `tinyproxy does not listen: ${child.tail()}`);
  return child;
}

const settings = (password) => ({
  OIDC_ISSUER_URL: issuer, OIDC_CA_FILE: file('authority.pem'), NO_PROXY: 'elsewhere.example,10.0.0.0/8', no_proxy: '',
  HTTPS_PROXY: `http://vestibule:${password}@127.0.0.1:${proxyPort}`,
});

before(async () => {
  provider = await startProvider();
  proxy = await startProxy();
  stack = await startStack({ edgeEnv: settings(PASSWORD), sessionEnv: settings(PASSWORD), store: 'memory:' });
});
after(async () => {
  await stack?.stop();
  await proxy?.stop();
  provider?.closeAllConnections();
  provider?.close();
  rmSync(folder, { recursive: true, force: true });
});

const tunnels = () => proxy.output.split(`CONNECT ${new URL(issuer).host} HTTP/1.1`).length - 1;

test('a sign-in begins with what the edge has read through the proxy', async () => {
  const login = await request(`${stack.edgeUrl}/api/auth/login`, { headers: NAVIGATION });
  assert.equal(login.status, 302, login.text);
  assert.ok(login.headers.get('location').startsWith(`${issuer}/authorize?`));
  await until(10_000, () => tunnels() > 0, () => proxy.tail());
});

test('the session service refreshes tokens through the proxy', async () => {
  const user = JSON.stringify({ sub: 'ada' });
  const tokens = Buffer.concat([field(1, 'an-old-one'), field(3, 'openid'), field(5, 'refresh-token')]);
  const [url] = stack.sessionUrls;
  const created = await invoke(url, 'CreateSession', Buffer.concat([field(1, issuer), field(2, user), field(3, tokens)]));
  assert.equal(created.status, 0, created.raw);
  const before = tunnels();
  const id = fields(created.messages[0])[1];
  const granted = await invoke(url, 'GetAccessToken', Buffer.concat([field(1, id), Buffer.from([3 << 3, 1])]));
  assert.equal(granted.status, 0, granted.raw);
  assert.equal(fields(granted.messages[0])[1].toString(), 'a-new-one');
  await until(10_000, () => tunnels() > before, () => proxy.tail());
});

test('with a wrong password nothing is reached, and no password is shown', async () => {
  const wrong = 'not-the-password';
  const refused = await startStack({ edgeEnv: settings(wrong), sessionEnv: settings(wrong), store: 'memory:' });
  try {
    const login = await request(`${refused.edgeUrl}/api/auth/login`, { headers: NAVIGATION });
    assert.equal(login.status, 503, login.text);
    for (const text of [login.text, refused.logs('edge'), refused.logs('session'), stack.logs('edge'), stack.logs('session')]) {
      assert.ok(!text.includes(wrong) && !text.includes(PASSWORD), text);
    }
  } finally {
    await refused.stop();
  }
});
