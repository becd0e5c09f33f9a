// Runs `doctor` of both programs against the real provider, with correct and with wrong settings.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { makeCertificate } from '../../lib/certificate.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { binary, startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { doctor, run, settingsOf } from './doctor.mjs';

let stack;
let settings;
let folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vestibule-'));
  stack = await startStack({ stateDir: join(folder, 'stack') });
  settings = settingsOf(stack);
});
after(async () => {
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** An authority, and a certificate from it for a name, with their files: `{ca, certificate, key}`. */
function certified(name, extension = 'subjectAltName=DNS:localhost') {
  const file = (kind) => join(folder, `${name}-${kind}`);
  const make = (...args) => execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', ...args], { stdio: 'pipe' });
  make('-subj', '/CN=authority', '-keyout', file('ca.key'), '-out', file('ca.pem'));
  make('-subj', `/CN=${name}`, '-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-addext', extension, '-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', file('key'), '-out', file('pem'));
  return { ca: file('ca.pem'), certificate: file('pem'), key: file('key') };
}

/** A test server on a free port of loopback; closing it also closes its open connections. */
async function serve(server) {
  const open = new Set();
  server.on('connection', (socket) => open.add(socket));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    close: () => { for (const socket of open) socket.destroy(); return new Promise((resolve) => server.close(resolve)); },
  };
}

/** A provider's discovery document under another issuer; all endpoints stay where they are. */
async function documentAs(issuer, changes = {}) {
  const document = await (await fetch(`${stack.issuer}/.well-known/openid-configuration`)).json();
  return JSON.stringify({ ...document, issuer, ...changes });
}

test('with the right settings all checks pass, and only the doctor has changed anything', async () => {
  for (const [program, env] of [['auth-edge', settings.edge], ['session-svc', settings.session]]) {
    const { status, amiss, text } = await doctor(program, env);
    assert.equal(status, 0, text);
    assert.deepEqual(amiss, []);
    assert.match(text, /\neverything fits\n$/);
  }
});

test('reports limits that otherwise show only when they are hit', async () => {
  const head = await doctor('auth-edge', { ...settings.edge, EDGE_CHECK_HEAD_BYTES: '8192' });
  assert.match(head.found('head_of_answers', 'Checks').found, /^at most 8192 bytes \(EDGE_CHECK_HEAD_BYTES\)/);
});

test('the addresses to register are those the edge uses', async () => {
  const { found } = await doctor('auth-edge', settings.edge);
  const at = (path) => `${stack.edgeUrl}${path}`;
  assert.equal(found('redirect_uri', 'Register').found, at('/api/auth/callback'));
  assert.equal(found('backchannel_logout_uri', 'Register').found, at('/api/auth/backchannel-logout'));
  assert.equal(found('initiate_login_uri', 'Register').found, at('/api/auth/login'));
  // A browser without a session is redirected at once to where the provider would send others.
  const landing = await new Promise((resolve) => { http.get(at('/api/auth/logout'), (response) => { response.resume(); resolve(response.headers.location); }); });
  assert.equal(found('post_logout_redirect_uri', 'Register').found, landing);
  const more = await doctor('auth-edge', { ...settings.edge, EDGE_FRONTCHANNEL_LOGOUT: 'true' });
  assert.equal(more.found('frontchannel_logout_uri', 'Register').found, at('/api/auth/frontchannel-logout'));
});

const WRONG = {
  'a slash too many in the issuer': {
    env: () => ({ OIDC_ISSUER_URL: `${stack.issuer}/` }), amiss: ['problem issuer'], setting: 'OIDC_ISSUER_URL', says: () => `write ${stack.issuer}`,
  },
  'the address of the document as the issuer': {
    env: () => ({ OIDC_ISSUER_URL: `${stack.issuer}/.well-known/openid-configuration` }), amiss: ['problem discovery'], setting: 'OIDC_ISSUER_URL', says: () => `write ${stack.issuer} (without`,
  },
  'another secret, seen by a pushed request': {
    env: () => ({ OIDC_CLIENT_SECRET: 'not-the-secret-but-as-long-as-one' }), amiss: ['problem client_credentials'], setting: 'OIDC_CLIENT_SECRET',
  },
  'another secret, seen by a made-up refresh token': {
    env: () => ({ OIDC_CLIENT_SECRET: 'not-the-secret-but-as-long-as-one', OIDC_PAR: 'off' }), amiss: ['problem client_credentials'], setting: 'OIDC_CLIENT_SECRET',
  },
  'an algorithm the provider does not use': {
    env: () => ({ OIDC_ID_TOKEN_SIGNING_ALG: 'ES384' }), amiss: ['problem id_token_algorithm'], setting: 'OIDC_ID_TOKEN_SIGNING_ALG', says: () => 'write auto',
  },
  'a base URL that is not registered': {
    env: () => ({ EDGE_BASE_URL: 'http://localhost:3999' }), amiss: ['problem sign_in_request', 'warning sign_out_request'], says: () => 'http://localhost:3999/api/auth/callback',
  },
  'the same without pushed requests': {
    env: () => ({ EDGE_BASE_URL: 'http://localhost:3999', OIDC_PAR: 'off' }), amiss: ['problem sign_in_request', 'warning sign_out_request'], says: () => 'http://localhost:3999/api/auth/callback',
  },
  'a scope the provider does not know': {
    env: () => ({ OIDC_SCOPE: 'openid everything' }), amiss: ['warning scope'], setting: 'OIDC_SCOPE', says: () => 'remove everything',
  },
  'a client that is not there': {
    env: () => ({ OIDC_CLIENT_ID: 'somebody-else' }), amiss: ['problem client_credentials', 'warning sign_out_request'], setting: 'OIDC_CLIENT_SECRET', says: () => 'somebody-else',
  },
  'a session service that is not there': {
    env: () => ({ EDGE_SESSION_SVC_URL: 'http://127.0.0.1:1' }), amiss: ['problem session_service'], setting: 'EDGE_SESSION_SVC_URL', says: () => 'start session-svc',
  },
  'a session service that has no TLS': {
    env: () => ({ EDGE_SESSION_SVC_URL: stack.sessionUrls[0].replace('http', 'https'), EDGE_SESSION_SVC_CA_FILE: makeCertificate(folder).certificate }),
    amiss: ['problem session_service'], setting: 'EDGE_SESSION_SVC_URL', says: () => 'write http://',
  },
  'something else at the session service\'s port': {
    env: () => ({ EDGE_SESSION_SVC_URL: stack.adminUrls.session }), amiss: ['problem session_service'], setting: 'EDGE_SESSION_SVC_URL',
  },
  'a closed port at the provider\'s address': {
    env: () => ({ OIDC_ISSUER_URL: 'http://127.0.0.1:1' }), amiss: ['problem discovery'], setting: 'OIDC_ISSUER_URL', says: () => 'HTTPS_PROXY',
  },
};

for (const [what, { env, amiss, setting, says }] of Object.entries(WRONG)) {
  test(`found with what mends it: ${what}`, async () => {
    const examined = await doctor('auth-edge', { ...settings.edge, ...env() });
    assert.deepEqual(examined.amiss, amiss, examined.text);
    const kinds = amiss.map((one) => one.split(' ')[0]);
    assert.equal(examined.status, kinds.includes('problem') ? 1 : 0, examined.text);
    const gravest = kinds.includes('problem') ? 'problem' : 'warning';
    const problem = examined.findings.find(({ result }) => result === gravest);
    if (setting) assert.equal(problem.setting, setting);
    if (says) assert.ok(problem.advice.includes(says()), problem.advice);
  });
}

test('finds an authentication method that the provider lacks before a user signs in', async () => {
  const { certificate, key } = makeCertificate(folder);
  const { OIDC_CLIENT_SECRET: _, ...rest } = settings.edge;
  const { status, amiss, found } = await doctor('auth-edge', { ...rest, OIDC_CLIENT_AUTH_METHOD: 'tls_client_auth', OIDC_CLIENT_CERT_FILE: certificate, OIDC_CLIENT_KEY_FILE: key });
  assert.equal(status, 1);
  assert.ok(amiss.includes('problem client_authentication'), amiss);
  assert.equal(found('client_authentication').setting, 'OIDC_CLIENT_AUTH_METHOD');
});

test('the authorization endpoint is asked as a browser asks, and a page that every address gets is a warning', async () => {
  const real = JSON.parse(await documentAs(stack.issuer)).authorization_endpoint;
  let issuer;
  let isPage = false;
  const { port, close } = await serve(http.createServer(async (request, response) => {
    const url = new URL(request.url, issuer);
    if (url.pathname !== '/authorize') return response.setHeader('Content-Type', 'application/json').end(await documentAs(issuer, { authorization_endpoint: `${issuer}/authorize` }));
    if (isPage) return response.setHeader('Content-Type', 'text/html').end('<h1>Sign in</h1>');
    if (/json/.test(request.headers.accept)) return response.writeHead(400).end('{}');
    const answer = await fetch(`${real}${url.search}`, { redirect: 'manual', headers: { accept: 'text/html' } });
    const location = answer.headers.get('location');
    return response.writeHead(answer.status, location ? { location } : {}).end();
  }));
  issuer = `http://127.0.0.1:${port}`;
  const examine = (more) => doctor('auth-edge', { ...settings.edge, OIDC_ISSUER_URL: issuer, OIDC_PAR: 'off', ...more });
  try {
    const right = await examine({});
    assert.deepEqual([right.status, right.found('sign_in_request').result], [0, 'ok'], right.text);
    const wrong = await examine({ EDGE_BASE_URL: 'http://localhost:3999' });
    assert.deepEqual([wrong.status, wrong.found('sign_in_request').result], [1, 'problem'], wrong.text);
    isPage = true;
    const page = await examine({});
    assert.deepEqual([page.status, page.amiss], [0, ['warning sign_in_request']], page.text);
  } finally {
    await close();
  }
});

test('a request that is refused at the redirect URI proves the address, and is unknown where its code says no more', async () => {
  const offline = await doctor('auth-edge', { ...settings.edge, OIDC_SCOPE: 'openid offline_access', OIDC_AUTHORIZATION_PARAMS: 'prompt=consent', OIDC_PAR: 'off' });
  assert.equal(offline.status, 0, offline.text);
  assert.ok(['ok', 'unknown'].includes(offline.found('sign_in_request').result), offline.text);
  assert.ok(!/register/.test(offline.found('sign_in_request').advice ?? ''), offline.text);
});

test('distinguishes a registered key from one that is not', async () => {
  const keys = ['one', 'other'].map((name) => {
    const file = join(folder, `${name}.pem`);
    execFileSync('openssl', ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', file], { stdio: 'pipe' });
    return file;
  });
  const keyed = await startStack({ clientAuth: 'private_key_jwt', edgeEnv: { OIDC_CLIENT_KEY_FILE: keys[0] }, sessionEnv: { OIDC_CLIENT_KEY_FILE: keys[0] } });
  try {
    const { OIDC_CLIENT_SECRET: _, ...rest } = settingsOf(keyed).edge;
    const examine = (more) => doctor('auth-edge', { ...rest, OIDC_CLIENT_AUTH_METHOD: 'private_key_jwt', ...more });
    const right = await examine({ OIDC_CLIENT_KEY_FILE: keys[0] });
    assert.equal(right.status, 0, right.text);
    assert.equal(right.found('jwks_uri', 'Register').found, `${keyed.edgeUrl}/.well-known/vestibule/client-jwks.json`);
    const wrong = await examine({ OIDC_CLIENT_KEY_FILE: keys[1] });
    assert.equal(wrong.status, 1, wrong.text);
    assert.deepEqual([wrong.amiss, wrong.found('client_credentials').setting], [['problem client_credentials'], 'OIDC_CLIENT_KEY_FILE']);
    const secret = await doctor('auth-edge', settingsOf(keyed).edge);
    assert.equal(secret.found('client_credentials').result, 'problem', secret.text);
  } finally {
    await keyed.stop();
  }
});

test('a clock that is an hour off is found, and by how much', async () => {
  const HOUR_MS = 3_600_000;
  let issuer;
  const server = http.createServer(async (_request, response) => {
    response.setHeader('Date', new Date(Date.now() - HOUR_MS).toUTCString());
    response.setHeader('Content-Type', 'application/json').end(await documentAs(issuer));
  });
  const { port, close } = await serve(server);
  issuer = `http://127.0.0.1:${port}`;
  const { status, found, text } = await doctor('auth-edge', { ...settings.edge, OIDC_ISSUER_URL: issuer }).finally(close);
  assert.equal(status, 1, text);
  assert.equal(found('clock').result, 'problem');
  assert.match(found('clock').found, /(359\d|3600) s behind ours/);
});

test('a certificate that is not believed is found, and one that ends soon', async () => {
  const { ca, certificate, key } = certified('provider');
  let issuer;
  const answer = async (_request, response) => response.setHeader('Content-Type', 'application/json').end(await documentAs(issuer));
  const { port, close } = await serve(https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, answer));
  const selfSigned = makeCertificate(folder);
  const other = await serve(https.createServer({ cert: readFileSync(selfSigned.certificate), key: readFileSync(selfSigned.key) }, answer));
  try {
    issuer = `https://localhost:${port}`;
    const examine = (more) => doctor('auth-edge', { ...settings.edge, OIDC_ISSUER_URL: issuer, ...more });
    const unknown = await examine({});
    assert.deepEqual(unknown.amiss, ['problem discovery'], unknown.text);
    assert.equal(unknown.found('discovery').setting, 'OIDC_CA_FILE');
    const known = await examine({ OIDC_CA_FILE: ca });
    assert.match(known.found('certificate').found, /expires in [12] days/, known.text);
    const elsewhere = await examine({ OIDC_CA_FILE: ca, OIDC_ISSUER_URL: `https://127.0.0.1:${port}` });
    assert.match(elsewhere.found('discovery').found, /for another name/, elsewhere.text);
    const authority = await examine({ OIDC_CA_FILE: selfSigned.certificate, OIDC_ISSUER_URL: `https://localhost:${other.port}` });
    assert.match(authority.found('discovery').found, /CA:TRUE/, authority.text);
  } finally {
    await Promise.all([close(), other.close()]);
  }
});

test('reports which caller the session service sees, and the calls that it may not make', async () => {
  const server = certified('service');
  const client = certified('edge', 'subjectAltName=DNS:edge.internal');
  const callers = join(folder, 'callers.toml');
  const [port, admin] = [await freePort(), await freePort()];
  const list = (identity, rpcs) => writeFileSync(callers, `[[caller]]\nidentity = "${identity}"\nrpcs = ${JSON.stringify(rpcs)}\n`);
  const start = () => new Child('session', binary('session-svc'), [], {
    env: { ...settings.session, SESSION_STORE: 'memory:', SESSION_LISTEN: `127.0.0.1:${port}`, SESSION_ADMIN_LISTEN: `127.0.0.1:${admin}`,
      SESSION_TLS_CERT_FILE: server.certificate, SESSION_TLS_KEY_FILE: server.key, SESSION_CLIENT_CA_FILE: client.ca, SESSION_CALLERS: callers },
  });
  const address = { ...settings.edge, EDGE_SESSION_SVC_URL: `https://localhost:${port}`, EDGE_SESSION_SVC_CA_FILE: server.ca };
  const shown = { ...address, EDGE_SESSION_SVC_CERT_FILE: client.certificate, EDGE_SESSION_SVC_KEY_FILE: client.key };
  const cases = [
    ['dns:edge.internal', ['*'], shown, 'session_service_rights', 'ok', /all it needs/],
    ['dns:edge.internal', ['GetSession'], shown, 'session_service_rights', 'problem', /BeginSignIn, .*WatchSessions/],
    ['dns:other.internal', ['*'], shown, 'session_service_rights', 'problem', /does not know the edge/],
    ['dns:edge.internal', ['*'], address, 'session_service', 'problem', /ends after the TLS handshake/],
    ['dns:edge.internal', ['*'], { ...shown, EDGE_SESSION_SVC_CA_FILE: client.ca }, 'session_service', 'problem', /not from an authority/],
    ['dns:edge.internal', ['*'], { ...shown, EDGE_SESSION_SVC_URL: `http://localhost:${port}` }, 'session_service', 'problem', /does not answer plain gRPC/],
  ];
  for (const [identity, rpcs, env, id, result, says] of cases) {
    list(identity, rpcs);
    const session = start();
    try {
      await until(20_000, async () => (await probe(`http://127.0.0.1:${admin}/readyz`)).status === 200, () => session.tail());
      const { found, text } = await doctor('auth-edge', env);
      assert.equal(found(id, 'Session service')?.result, result, text);
      assert.match(found(id, 'Session service').found, says);
      if (id === 'session_service_rights') assert.equal(found('session_service_identity').found, 'edge.internal');
    } finally {
      await session.stop();
    }
  }
});

test('a provider that hangs is a finding, and the doctor comes to an end', async () => {
  const { port, close } = await serve(net.createServer(() => {}));
  const { status, amiss } = await doctor('auth-edge', { ...settings.edge, OIDC_ISSUER_URL: `http://127.0.0.1:${port}`, OIDC_HTTP_TIMEOUT_MS: '300', EDGE_SESSION_SVC_URL: `http://127.0.0.1:${port}` });
  await close();
  assert.equal(status, 1);
  assert.deepEqual(amiss, ['problem discovery', 'problem session_service']);
});

test('each of several providers has a section, whose title says what a setting is called in the file', async () => {
  const secret = join(folder, 'secret');
  writeFileSync(secret, stack.secrets.client);
  const table = (id, issuer) => `[[provider]]\nid = "${id}"\nissuer_url = "${issuer}"\nclient_id = "vestibule-dev"\nclient_secret_file = "${secret}"\n`;
  const file = join(folder, 'providers.toml');
  writeFileSync(file, `default = "staff"\n${table('staff', stack.issuer)}${table('partner', 'http://127.0.0.1:1')}`);
  const others = Object.fromEntries(Object.entries(settings.edge).filter(([name]) => !name.startsWith('OIDC_')));
  const { status, sections, found } = await doctor('auth-edge', { ...others, OIDC_PROVIDERS: file });
  assert.equal(status, 1);
  for (const title of ['Provider "staff"', 'Register at the provider "staff"', 'Provider "partner"', 'Register at the provider "partner"', 'Session service', 'Checks']) {
    assert.ok(sections.some((one) => one.startsWith(title)), `${title} in ${sections}`);
  }
  assert.equal(found('redirect_uri', 'Register at the provider "partner"').found, `${stack.edgeUrl}/api/auth/callback/partner`);
  const unreachable = found('discovery', 'Provider "partner"');
  assert.deepEqual([unreachable.result, unreachable.setting], ['problem', 'OIDC_ISSUER_URL']);
  assert.match(unreachable.section, /OIDC_CLIENT_ID is the key client_id in OIDC_PROVIDERS/);
});

test('prints no secret with any fault; settings that are wrong exit with 78, an unknown flag with 2', async () => {
  const secrets = { OIDC_CLIENT_SECRET: 'a-wrong-secret-nobody-may-read-1', HTTPS_PROXY: 'http://user:a-wrong-secret-nobody-may-read-2@127.0.0.1:1' };
  for (const issuer of [stack.issuer, 'https://issuer.invalid']) {
    const { text, status } = await doctor('auth-edge', { ...settings.edge, ...secrets, OIDC_ISSUER_URL: issuer });
    assert.equal(status, 1);
    for (const secret of ['nobody-may-read', stack.secrets.edge, stack.secrets.encryption]) assert.ok(!text.includes(secret), secret);
  }
  for (const program of ['auth-edge', 'session-svc']) {
    assert.equal((await run(program, ['doctor'], {})).status, 78);
    assert.equal((await run(program, ['doctor', '--everything'], settings.edge)).status, 2);
  }
});

test('session-svc doctor judges its store: reachable, what it evicts, and what its user may do', async () => {
  const port = await freePort();
  const configuration = join(folder, 'redis.conf');
  writeFileSync(configuration, [`port ${port}`, 'bind 127.0.0.1', 'save ""', 'maxmemory 100mb', 'maxmemory-policy allkeys-lru', 'user default on nopass ~* &* +@all',
    'user reader on >a-password-of-a-reader ~vestibule:* +get +role +ping +info +time', ''].join('\n'));
  const redis = new Child('redis', 'redis-server', [configuration]);
  const examine = (store) => doctor('session-svc', { ...settings.session, SESSION_STORE: store });
  try {
    await until(10_000, () => redis.output.includes('Ready to accept connections'), () => redis.tail());
    const evicting = await examine(`redis://127.0.0.1:${port}`);
    assert.equal(evicting.status, 1, evicting.text);
    assert.deepEqual(evicting.amiss, ['problem maxmemory_policy', 'warning persistence'], evicting.text);
    assert.equal(evicting.found('store_rights').result, 'ok');
    const reader = await examine(`redis://reader:a-password-of-a-reader@127.0.0.1:${port}`);
    assert.equal(reader.found('store_rights')?.result ?? reader.found('store').result, 'problem', reader.text);
    assert.ok(!reader.text.includes('a-password-of-a-reader'));
  } finally {
    await redis.stop();
  }
  const away = await examine(`redis://127.0.0.1:${port}`);
  assert.deepEqual([away.status, away.amiss], [1, ['problem store']], away.text);
  const memory = await examine('memory:');
  assert.deepEqual([memory.status, memory.amiss], [0, ['warning store']], memory.text);
});
