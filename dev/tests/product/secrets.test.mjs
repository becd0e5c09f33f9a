// Runs whole lives of sessions with every kind of error. Then searches everything they left behind (the store's
// files, logs, traces, metrics, error texts) for every secret that was ever on the wire.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { pause, probe, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';
import { field, invoke, open, startCollector } from './grpc.mjs';

const RECORDER = fileURLToPath(new URL('./record-http.cjs', import.meta.url));
const LEVELS = 'debug';
const LIFETIME_S = 2; // of access tokens, which count as expired once half of it is left
const DUE_MS = LIFETIME_S * 500 + 100;

for (const store of ['redis', 'file:']) {
  // conformance: B-020 B-069
  test(`nothing a life leaves behind holds a secret: ${store}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-secrets-'));
    const recording = join(folder, 'provider.jsonl');
    const collector = await startCollector();
    const before = { NODE_OPTIONS: process.env.NODE_OPTIONS, RECORD_HTTP_TO: process.env.RECORD_HTTP_TO };
    Object.assign(process.env, { NODE_OPTIONS: `--require=${RECORDER}`, RECORD_HTTP_TO: recording });
    const settings = { RUST_LOG: LEVELS, LOG_FORMAT: 'json', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '200' };
    const stateDir = join(folder, 'state');
    let stack;
    t.after(async () => {
      await stack?.stop();
      collector.stop();
      rmSync(folder, { recursive: true, force: true });
    });
    try {
      stack = await startStack({
        store, stateDir, accessTokenTtl: LIFETIME_S, sessionEnv: { ...settings, SESSION_ROLL_INTERVAL: '0' },
        edgeEnv: { ...settings, EDGE_ACCESS_TOKEN_ENDPOINT: 'true', EDGE_SESSION_CACHE_SECS: '0' },
      });
    } finally {
      for (const [name, value] of Object.entries(before)) value === undefined ? delete process.env[name] : process.env[name] = value;
    }

    const texts = await live(stack);
    for (const [name, url] of Object.entries(stack.adminUrls)) {
      for (const path of ['/metrics', '/readyz', '/livez']) texts.push([`${name} ${path}`, Buffer.from((await probe(url + path)).body)]);
    }
    await until(10_000, () => collector.bytes().includes('/api/auth/callback'), () => 'no traces arrive');
    if (store === 'redis') assert.match(await redis(stack.store, 'SAVE'), /^\+OK/); // a dump next to the append-only file
    const secrets = secretsOf(stack, recording);
    await stack.stop(); // writes the last logs and traces, and commits the last change
    texts.push(['the traces', collector.bytes()]);
    texts.push(...left(stateDir));

    const places = texts.map(([place]) => place).join('\n');
    assert.match(places, store === 'redis' ? /appendonly.*\n[^]*dump\.rdb/ : /sessions\.redb/, places);
    assert.match(places, /logs\/session\.log[^]*the traces|the traces[^]*logs\/session\.log/);
    const found = texts.flatMap(([place, bytes]) => secrets.filter(({ needle }) => bytes.includes(needle)).map(({ what }) => `${place} holds ${what}`));
    assert.deepEqual([...new Set(found)], []);
    for (const [place, bytes] of texts) {
      if (!/provider|idp/.test(place)) assert.doesNotMatch(bytes.toString('latin1'), /eyJ[\w-]{10,}\.eyJ/, `${place} holds a JWT`);
    }
  });
}

/** Signs in, uses, changes, breaks and ends sessions. Returns all error texts. */
async function live(stack) {
  const texts = [];
  const failed = (what, answer) => {
    assert.ok(answer.status >= 400, `${what}: ${answer.status}`);
    texts.push([what, Buffer.from(`${JSON.stringify([...answer.headers].filter(([name]) => name !== 'set-cookie'))}${answer.text}`)]);
  };
  const person = new Client();
  const callback = await person.authorize(stack, { login: '/api/auth/login?returnTo=/account' });
  const taken = await new Client().navigate(callback);
  failed('a callback in another browser', taken);
  assert.equal((await person.navigate(callback)).status, 302);
  const [name, value] = person.sessionCookie(stack);
  stack.seen = { value, id: value.split('.')[0] };
  const [url] = stack.sessionUrls;
  const watched = open(url, 'WatchSessions');
  await until(5_000, () => watched.messages.length > 0, () => 'the watch does not begin');

  const own = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
  for (const path of ['/api/auth/me', '/api/auth/status', '/api/auth/check', '/api/auth/me?refetch=true']) assert.ok((await person.fetch(stack.edgeUrl + path, { headers: own })).status < 300, path);
  for (let turn = 0; turn < 3; turn += 1) {
    await pause(DUE_MS);
    assert.equal((await person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: own })).status, 200);
  }
  failed('an access token for another site', await person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: { accept: 'application/json' } }));
  failed('a callback a second time', await new Client().navigate(callback));
  const forged = { cookie: `${name}=${value.slice(0, -4)}AAAA` };
  for (const headers of [forged, { cookie: `${name}=${value}; ${name}=${value}` }]) {
    failed('a forged cookie', await request(`${stack.edgeUrl}/api/auth/access-token`, { headers: { ...own, ...headers } }));
  }

  const id = stack.seen.id;
  const attributes = field(3, JSON.stringify({ theme: 'dark' }));
  const calls = [
    ['GetSession', field(1, id), 0], ['RollSession', field(1, id), 0], ['GetAccessToken', field(1, id), 0],
    ['UpdateSession', Buffer.concat([field(1, id), attributes, field(4, field(1, 'attributes'))]), 0],
    ['UpdateSession', Buffer.concat([field(1, id), attributes, field(4, field(1, 'attributes')), Buffer.from([5 << 3, 1])])],
    ['GetAccessToken', Buffer.concat([field(1, id), field(2, 'not:granted')])],
    ['GetSession', field(1, `${id}00`)], ['GetSession', field(2, `${id.slice(1)}g`)], ['EndSession', field(1, id.toUpperCase())],
    ['GetSession', Buffer.concat([field(1, id), Buffer.from([0xff])])], ['UpdateSession', field(1, id)],
    ['CreateSession', Buffer.concat([field(1, 'issuer'), field(3, field(1, value))])],
  ];
  for (const [method, message, expected] of calls) {
    const { status, raw } = await invoke(url, method, message);
    if (expected === 0) assert.equal(status, 0, `${method}: ${raw}`);
    else {
      assert.notEqual(status, 0, method);
      texts.push([`the error of ${method}`, Buffer.from(raw, 'latin1')]);
    }
  }

  const other = new Client();
  await other.signIn(stack, { account: stack.accounts[1] });
  stack.other = { value: other.sessionCookie(stack)[1] };
  await stack.kill('idp');
  try {
    failed('the profile while the provider is down', await person.fetch(`${stack.edgeUrl}/api/auth/me?refetch=true`, { headers: own }));
    const forced = await invoke(url, 'GetAccessToken', Buffer.concat([field(1, id), Buffer.from([3 << 3, 1])]));
    assert.notEqual(forced.status, 0);
    texts.push(['the error of a refresh', Buffer.from(forced.raw, 'latin1')]);
  } finally {
    await stack.start('idp');
  }
  assert.equal((await person.navigate(`${stack.edgeUrl}/api/auth/logout`)).status, 302);
  assert.equal((await request(`${stack.edgeUrl}/api/auth/me`, { headers: { ...own, cookie: `${name}=${value}` } })).status, 204);
  const gone = await invoke(url, 'GetAccessToken', field(1, id));
  texts.push(['the error of an ended session', Buffer.from(gone.raw, 'latin1')]);
  watched.close();
  texts.push(['a watch', Buffer.concat(watched.messages)]);
  return texts;
}

/** Every secret, in every encoding that a program may write. */
function secretsOf(stack, recording) {
  const known = new Map();
  const add = (what, text) => text && text.length >= 8 && known.set(text, what);
  for (const [at, { value }] of [stack.seen, stack.other].entries()) {
    add(`cookie ${at}`, value);
    add(`session ID ${at}`, value.split('.')[0]);
    add(`signature ${at}`, value.split('.')[1]);
  }
  add('the client secret', stack.secrets.client);
  add('the edge secret', stack.secrets.edge);
  add('the encryption key', stack.secrets.encryption);
  const kinds = new Set();
  for (const line of readFileSync(recording, 'utf8').trim().split('\n')) {
    const { url, headers, asked, answered, location } = JSON.parse(line);
    if (new URL(url, stack.issuer).pathname !== '/token') continue;
    add('the client authentication', headers.authorization?.split(' ')[1]);
    const form = new URLSearchParams(asked);
    for (const name of ['code', 'code_verifier', 'refresh_token']) {
      if (form.has(name)) kinds.add(name);
      add(`a ${name}`, form.get(name));
    }
    const given = JSON.parse(answered);
    for (const name of ['access_token', 'refresh_token', 'id_token']) {
      if (given[name]) kinds.add(`new ${name}`);
      add(`an ${name} given`, given[name]);
    }
    add('a location', location && new URL(location, stack.issuer).searchParams.get('code'));
  }
  assert.deepEqual([...kinds].sort(), ['code', 'code_verifier', 'new access_token', 'new id_token', 'new refresh_token', 'refresh_token'], 'the provider was seen at work');
  const forms = [];
  for (const [text, what] of known) {
    const bytes = Buffer.from(text);
    forms.push({ what, needle: bytes });
    for (const form of ['hex', 'base64', 'base64url']) forms.push({ what: `${what} in ${form}`, needle: Buffer.from(bytes.toString(form).replace(/=+$/, '').slice(0, -2)) });
    if (/^([0-9a-f]{2}){16,}$/.test(text)) {
      const raw = Buffer.from(text, 'hex');
      forms.push({ what: `${what}, its bytes`, needle: raw });
      for (const form of ['base64', 'base64url']) forms.push({ what: `${what}, its bytes in ${form}`, needle: Buffer.from(raw.toString(form).replace(/=+$/, '')) });
    }
  }
  for (const { email, password } of stack.accounts) forms.push({ what: 'a password', needle: Buffer.from(password) }, { what: 'an e-mail address', needle: Buffer.from(email) });
  return forms;
}

/** Files that the services and the store wrote, without the provider's files and the files of secrets. */
function left(folder, below = '') {
  return readdirSync(folder).flatMap((name) => {
    const [path, shown] = [join(folder, name), join(below, name)];
    if (/^(idp|client-secret|edge-secret|encryption-key)/.test(name)) return [];
    return statSync(path).isDirectory() ? left(path, shown) : [[shown, readFileSync(path)]];
  });
}

/** Sends one inline command to a Redis. */
function redis(url, command) {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1', () => socket.end(`${command}\r\n`));
    socket.setEncoding('utf8').on('data', (chunk) => { answer += chunk; }).on('end', () => resolve(answer)).on('error', reject);
  });
}
