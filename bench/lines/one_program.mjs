// The program `vestibule` next to the two services and to Apache with mod_auth_openidc, before one upstream: a guarded
// page passed on, a whole sign-in, memory, and the time from start to the first answer. Each keeps its sessions in a
// file or in its own memory. The provider is the same.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ACCOUNTS } from '../../dev/idp/lib/accounts.mjs';
import { Child } from '../../dev/lib/child.mjs';
import { freePort, probe, until } from '../../dev/lib/net.mjs';
import { ROOT, binary } from '../../dev/stack.mjs';
import { Client } from '../../dev/tests/product/client.mjs';
import { cpuMicros, fixed, saturate, spread } from '../lib/measure.mjs';
import { PROFILE, SMALL, startBound } from '../lib/services.mjs';

const SIGN_INS = 50;
const STARTS = 5;
const CONNECTIONS = 16;
const CLIENT = 'vestibule-dev';
const SECRET = 'a secret of the benchmark, thirty-two characters';
const PASSPHRASE = 'sessions of the benchmark, 32 or more characters';
const MODULES = '/usr/lib/apache2/modules';

/** Memory of processes in MiB, shared pages divided among them. */
const memory = (pids) => pids.reduce((sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) / 1024, 0);

const children = (pid) => spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout.trim().split('\n').filter(Boolean).map(Number);

/** One product: its address and callback, and `start`, which returns its processes in the order of their start. */
async function products({ folder, upstream, issuer, ports }) {
  const secret = join(folder, 'secret');
  writeFileSync(secret, SECRET, { mode: 0o600 });
  writeFileSync(join(folder, 'routes.toml'), `[[route]]\npath = "/*"\nguard = "page"\nupstream = "${upstream}"\n`);
  const url = (name) => `http://127.0.0.1:${ports[name]}`;
  const provider = { OIDC_ISSUER_URL: issuer, OIDC_CLIENT_ID: CLIENT, OIDC_CLIENT_SECRET_FILE: secret, OIDC_PAR: 'off' };
  const edge = (name) => ({ PATH: process.env.PATH, RUST_LOG: 'warn', ...provider, EDGE_LISTEN: `127.0.0.1:${ports[name]}`, EDGE_BASE_URL: url(name), EDGE_ROUTES: join(folder, 'routes.toml'), EDGE_RATE_LIMIT_LOGIN: '0', SESSION_MAX_PER_SUBJECT: '0' });
  const program = (name, env) => new Child(name, binary(name, name === 'vestibule' ? SMALL : PROFILE), [], { env, cwd: folder });
  return [
    { id: 'two', work: 'the two services', at: url('two'), start: () => [
      program('session-svc', { PATH: process.env.PATH, RUST_LOG: 'warn', ...provider, SESSION_LISTEN: `127.0.0.1:${ports.session}`, SESSION_ADMIN_LISTEN: `127.0.0.1:${ports.sessionAdmin}`, SESSION_INSECURE: 'true', SESSION_STORE: `file:${join(folder, 'sessions.redb')}`, SESSION_ENCRYPTION_KEY: 'e'.repeat(64), SESSION_MAX_PER_SUBJECT: '0' }),
      program('auth-edge', { ...edge('two'), EDGE_ADMIN_LISTEN: `127.0.0.1:${ports.edgeAdmin}`, EDGE_SECRET: PASSPHRASE, EDGE_SESSION_SVC_URL: url('session') }),
    ] },
    { id: 'one', work: 'vestibule', at: url('one'), start: () => [program('vestibule', { ...edge('one'), EDGE_ADMIN_LISTEN: `127.0.0.1:${ports.oneAdmin}` })] },
    { id: 'apache', work: 'Apache with mod_auth_openidc', at: url('apache'), start: () => [apache({ folder, port: ports.apache, at: url('apache'), upstream, issuer })] },
  ];
}

/** Apache with the event worker of Debian, and the module's default cache in shared memory. */
function apache({ folder, port, at, upstream, issuer }) {
  const file = join(folder, 'apache.conf');
  mkdirSync(join(folder, 'www'), { recursive: true });
  chmodSync(folder, 0o755); // Apache's processes run as another user
  const modules = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http', 'auth_openidc'];
  writeFileSync(file, `ServerRoot "${folder}"
PidFile "${folder}/apache.pid"
ErrorLog "${folder}/apache.log"
DocumentRoot "${folder}/www"
DefaultRuntimeDir "${folder}"
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
${modules.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
User www-data
Group www-data
OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
OIDCClientID ${CLIENT}
OIDCClientSecret "${SECRET}"
OIDCRedirectURI ${at}/api/auth/callback
OIDCCryptoPassphrase "${PASSPHRASE}"
OIDCPKCEMethod S256
OIDCScope "openid profile email"
ProxyPass /api/auth/callback !
ProxyPass / ${upstream}/ keepalive=On
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
`);
  return new Child('apache2', '/usr/sbin/apache2', ['-f', file, '-D', 'FOREGROUND']);
}

/** Signs a user in as a browser does: from the guarded page to the same page. */
async function signIn({ at }) {
  const client = new Client();
  const isCallback = (url) => url.startsWith(`${at}/api/auth/callback`);
  const form = await client.follow(`${at}/page`);
  const body = new URLSearchParams({ email: ACCOUNTS[0].email, password: ACCOUNTS[0].password });
  const posted = await client.navigate(`${form.url}/login`, { method: 'POST', body });
  const next = new URL(posted.headers.get('location'), form.url).href;
  const page = await client.follow(isCallback(next) ? next : (await client.follow(next, isCallback)).location);
  if (page.status !== 200) throw new Error(`${at}: no page after the sign-in: ${page.status} ${page.text.slice(0, 200)}`);
  return [...client.cookies(at)].map(([name, value]) => `${name}=${value}`).join('; ');
}

/** Starts a product. Returns it with its processes, and the time until its first answer. */
async function started(product) {
  const began = performance.now();
  const running = product.start();
  while (![302, 307, 401].includes((await probe(`${product.at}/page`)).status)) { // asked again at once
    if (performance.now() - began > 10_000) throw new Error(running.map((child) => child.tail()).join('\n'));
  }
  const took = performance.now() - began;
  const pids = () => running.flatMap(({ pid }) => [pid, ...children(pid)]);
  return { ...product, took, pids, stop: async () => { for (const child of running.toReversed()) await child.stop(); } };
}

export async function oneProgram({ rounds, seconds, say, cleanup }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bench-'));
  cleanup({ stop: () => rmSync(folder, { recursive: true, force: true }) });
  const ports = {};
  for (const name of ['idp', 'two', 'one', 'apache', 'session', 'sessionAdmin', 'edgeAdmin', 'oneAdmin']) ports[name] = await freePort();
  const upstream = cleanup(await startBound(300)).url.replace(/\/$/, '');
  const issuer = `http://127.0.0.1:${ports.idp}`;
  const all = await products({ folder, upstream, issuer, ports });
  const redirects = all.flatMap(({ at }) => ['--redirect-uri', `${at}/api/auth/callback`]);
  const idp = cleanup(new Child('idp', process.execPath, [join(ROOT, 'dev/idp/server.mjs'), '--port', String(ports.idp), '--client-secret-file', join(folder, 'secret'), ...redirects]));
  await until(20_000, async () => (await probe(`${issuer}/.well-known/openid-configuration`)).status === 200, () => idp.tail());
  const rows = [{ id: 'one size', work: 'vestibule: size of the program', unit: 'MB', ...fixed(statSync(binary('vestibule', SMALL)).size / 1e6, 1) }];
  for (const product of all) {
    const took = [];
    for (let start = 0; start < STARTS; start += 1) {
      const running = await started(product);
      took.push(running.took);
      await running.stop();
    }
    rows.push({ id: `${product.id} start`, work: `${product.work}: start to the first answer`, unit: 'ms', ...spread(took, 0) });
  }
  const cases = [];
  for (const product of all) {
    const running = cleanup(await started(product));
    const cookie = await signIn(product);
    rows.push({ id: `${product.id} at rest`, work: `${product.work}: memory after one sign-in`, unit: 'MiB', ...fixed(memory(running.pids()), 1) });
    cases.push({ ...running, cookie, micros: [], millis: [] });
  }
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      // Apache starts and ends processes with the load: only those that last are counted.
      const pids = one.pids().map((pid) => [String(pid), pid]);
      one.micros.push((await saturate({ url: `${one.at}/page`, headers: { cookie: one.cookie }, pids, seconds, connections: CONNECTIONS })).micros);
      const used = () => one.pids().reduce((sum, pid) => sum + cpuMicros(pid), 0);
      const before = used();
      for (let time = 0; time < SIGN_INS; time += 1) await signIn(one);
      one.millis.push((used() - before) / SIGN_INS / 1000);
      say(`round ${round} ${one.id}: ${one.micros.at(-1).toFixed(1)} µs a page, ${one.millis.at(-1).toFixed(2)} ms a sign-in`);
    }
  }
  for (const one of cases) {
    rows.push({ id: `${one.id} page`, work: `${one.work}: a guarded page passed on`, unit: 'CPU µs', ...spread(one.micros) });
    rows.push({ id: `${one.id} sign-in`, work: `${one.work}: a sign-in, from page to page, provider excluded`, unit: 'CPU ms', ...spread(one.millis, 2) });
    rows.push({ id: `${one.id} loaded`, work: `${one.work}: memory after the load`, unit: 'MiB', ...fixed(memory(one.pids()), 1) });
  }
  return { rows };
}
