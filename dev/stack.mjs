// The whole product on loopback, for `make run`, the browser tests, the benchmark and other tests of real programs.
//
//   import { startStack } from '../dev/stack.mjs';
//   const stack = await startStack({ accessTokenTtl: 5 });       // every option has a default.
//   stack.edgeUrl                      'http://127.0.0.1:41123'  the URL to open (of a balancer with several edges).
//   stack.issuer, stack.accounts       provider and accounts: [{name, email, password}, …].
//   stack.sessionUrls                  ['http://127.0.0.1:41125'] gRPC of each session service.
//   stack.adminUrls                    {edge: 'http://127.0.0.1:…', session: …}: /livez /readyz /metrics.
//   await stack.restart('session', 'SIGKILL')   sends a signal (default SIGTERM), restarts it, waits until ready.
//   await stack.kill('edge', 'SIGKILL')         ends it: {code, signal}; stack.start('edge') restarts it.
//   stack.pid('edge'), stack.logs('edge')       process ID; the last 64 KiB of output.
//   await stack.stop()                          ends everything and removes the temporary folder.
//
// Process names are idp, idp-2, session, session-2, …, edge, edge-2, …, redis. The programs must exist in
// ${CARGO_TARGET_DIR:-target}/debug. No child outlives the process that called startStack.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ACCOUNTS } from './idp/lib/accounts.mjs';
import { PROVIDER_NAME } from './idp/lib/pages.mjs';
import { makeCertificate } from './lib/certificate.mjs';
import { limitMemory } from './lib/cgroup.mjs';
import { Child } from './lib/child.mjs';
import { freePort, probe, startBalancer, until } from './lib/net.mjs';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const READY_MS = 60_000; // debug programs on a busy two-core machine; more with options.readyMs

/** Path of one of the two programs. `profile` is debug or release. */
export function binary(name, profile = 'debug') {
  return join(resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target'), profile, name);
}

/**
 * @param {object} [options]
 * @param {number} [options.edges] edges (1); several get a balancer.
 * @param {number} [options.sessionServices] session services (1).
 * @param {string} [options.publicUrl] the address for browsers, if it is that of another proxy (edge's own).
 * @param {string} [options.host] name in the edge's address (127.0.0.1); `localhost` makes it another site.
 * @param {boolean} [options.tls] whether the edge uses TLS with a new certificate (no); needs openssl.
 * @param {string} [options.store] SESSION_STORE ('file:'): 'file:' is a temporary file, 'redis' starts a new Redis.
 * @param {number} [options.accessTokenTtl] lifetime of access tokens in seconds (300).
 * @param {object} [options.provider] OIDC_* of a running provider for both services: starts none.
 * @param {boolean} [options.secondProvider] two providers in a file: `main` (the default; process idp) and `other`
 *   (process idp-2) (no).
 * @param {string} [options.clientAuth] client authentication (client_secret_basic); for private_key_jwt the edge
 *   publishes the keys, and edgeEnv and sessionEnv name their files.
 * @param {string[]} [options.resources] resources for access tokens of the provider (none).
 * @param {boolean} [options.registration] whether clients may register themselves at the provider (no).
 * @param {string} [options.machineClient] client that gets tokens for itself, with `secrets.client` (none).
 * @param {number} [options.people] added users at the provider (0).
 * @param {number} [options.groups] groups of each added user (0).
 * @param {string} [options.providerLog] file for the provider's log of grants (none).
 * @param {string} [options.disabledFile] file of disabled accounts, one a line (none).
 * @param {object} [options.edgeEnv] more settings of every edge, by variable name.
 * @param {object} [options.sessionEnv] more settings of every session service.
 * @param {number} [options.readyMs] time for a process to become ready (60,000).
 * @param {object} [options.env] more environment by process name.
 * @param {string[]} [options.redisArgs] more arguments of redis-server.
 * @param {string} [options.routes] route table of the edges (dev/routes.toml).
 * @param {object} [options.ports] fixed ports: url, idp, redis, edge, edgeAdmin, edge-2, session, sessionAdmin, …
 * @param {object} [options.fronts] ports of the caller's proxies in front of processes, by name.
 * @param {object} [options.secrets] {edge, encryption, client} (random).
 * @param {string} [options.stateDir] folder of stores, secrets and logs (a temporary one).
 * @param {object} [options.limits] memory limits in bytes by process name; needs root (none).
 * @param {string} [options.profile] debug or release programs (debug).
 * @param {(name: string, ended: {code: number, signal: string}, log: string,
 *   start: () => Promise<{pid: number}>) => void} [options.onExit]
 *   called when a process ends unexpectedly; `start` restarts it and waits until it is ready.
 * @param {(name: string, pid: number) => void} [options.onStart] called when a process starts, before it is ready.
 * @param {(text: string) => void} [options.onStep] called with each step of the start.
 * @param {(name: string, line: string) => void} [options.onLine] called with every line of output.
 * @param {boolean} [options.inheritSettings] pass on EDGE_*, SESSION_* and OIDC_* of the environment (no); with an
 *   OIDC_ISSUER_URL the services use that provider, and none is started.
 */
export async function startStack(options = {}) {
  try {
    return await startOnce(options);
  } catch (error) {
    // Another program took a port between its choice and its use: try other ports.
    if (options.ports || !/EADDRINUSE|[Aa]ddress (already )?in use|is taken; choose/.test(error.message)) throw error;
    return startOnce(options);
  }
}

async function startOnce(options) {
  const { edges = 1, sessionServices = 1, store = 'file:', ports = {}, profile = 'debug', onStep = () => {} } = options;
  for (const program of ['auth-edge', 'session-svc']) {
    if (!existsSync(binary(program, profile))) throw new Error(`${binary(program, profile)} does not exist: run \`cargo build\` first`);
  }
  const stateDir = options.stateDir ?? mkdtempSync(join(tmpdir(), 'vestibule-'));
  mkdirSync(join(stateDir, 'logs'), { recursive: true });
  const secrets = { edge: randomBytes(32).toString('hex'), encryption: randomBytes(32).toString('hex'), client: randomBytes(32).toString('base64url'), ...options.secrets };
  const secretFile = (name, text) => {
    const file = join(stateDir, name);
    writeFileSync(file, `${text}\n`, { mode: 0o600 });
    return file;
  };
  const port = async (name) => (ports[name] ??= await freePort());

  const numbered = (word, count) => Array.from({ length: count }, (_, at) => (at === 0 ? word : `${word}-${at + 1}`));
  const edgeNames = numbered('edge', edges);
  const sessionNames = numbered('session', sessionServices);
  for (const name of ['idp', 'idp-2', ...[...edgeNames, ...sessionNames].flatMap((process) => [process, `${process}Admin`])]) await port(name);
  const edgeAt = (at) => `${options.tls ? 'https' : 'http'}://${options.host ?? '127.0.0.1'}:${at}`;
  const edgeUrl = options.publicUrl ?? edgeAt(edges > 1 ? await port('url') : ports.edge);
  const certificate = options.tls ? makeCertificate(stateDir) : undefined;
  const url = (name) => `http://127.0.0.1:${ports[name]}`;
  const front = (name) => `http://127.0.0.1:${options.fronts?.[name] ?? ports[name]}`;
  const issuer = options.provider?.OIDC_ISSUER_URL || (options.inheritSettings && process.env.OIDC_ISSUER_URL) || front('idp');

  let sessionStore = store;
  if (store === 'file:') sessionStore = `file:${join(stateDir, 'sessions.redb')}`;
  if (store === 'redis') {
    await port('redis');
    sessionStore = `redis://${new URL(front('redis')).host}/0`;
  }

  const isSetting = (name) => /^(EDGE|SESSION|OIDC|REDIS|AUDIT)_/.test(name);
  const baseEnv = Object.fromEntries(Object.entries(process.env).filter(([name]) => options.inheritSettings || !isSetting(name)));
  const foreignProvider = options.provider ?? (options.inheritSettings && process.env.OIDC_ISSUER_URL && {});
  const clientAuth = options.clientAuth ?? 'client_secret_basic';
  const keyed = clientAuth === 'private_key_jwt';
  const provider = foreignProvider ? { ...foreignProvider } : {
    OIDC_ISSUER_URL: issuer,
    OIDC_CLIENT_ID: 'vestibule-dev',
    OIDC_PROVIDER_NAME: PROVIDER_NAME,
    OIDC_CLIENT_AUTH_METHOD: clientAuth,
    ...(!keyed && { OIDC_CLIENT_SECRET_FILE: secretFile('client-secret', secrets.client) }),
  };
  const idps = options.secondProvider ? { idp: 'main', 'idp-2': 'other' } : { idp: undefined };
  if (options.secondProvider) {
    const tables = Object.entries(idps).map(([name, id]) => [
      '[[provider]]', `id = "${id}"`, `issuer_url = "${url(name)}"`, 'client_id = "vestibule-dev"',
      `client_secret_file = "${provider.OIDC_CLIENT_SECRET_FILE}"`, '',
    ].join('\n'));
    const file = join(stateDir, 'providers.toml');
    writeFileSync(file, `default = "main"\n${tables.join('')}`);
    for (const name of Object.keys(provider)) delete provider[name];
    provider.OIDC_PROVIDERS = file;
  }
  const edgeSecret = secretFile('edge-secret', secrets.edge);
  const encryptionKey = secretFile('encryption-key', secrets.encryption);

  // name → how to start it and how to check that it is ready
  const plan = new Map();
  if (store === 'redis') {
    const keep = options.stateDir ? ['--appendonly', 'yes', '--dir', stateDir] : ['--appendonly', 'no'];
    plan.set('redis', {
      command: 'redis-server',
      args: ['--port', String(ports.redis), '--bind', '127.0.0.1', '--save', '', '--maxmemory-policy', 'noeviction', ...keep, ...(options.redisArgs ?? [])],
      ready: (child) => child.output.includes('Ready to accept connections'),
    });
  }
  for (const [name, id] of foreignProvider ? [] : Object.entries(idps)) plan.set(name, {
    command: process.execPath,
    args: [
      join(ROOT, 'dev/idp/server.mjs'), '--port', String(ports[name]), `--client-secret=${secrets.client}`,
      '--redirect-uri', `${edgeUrl}/api/auth/callback${id ? `/${id}` : ''}`,
      // Exactly as in the README, so that tests use the same values as users register.
      '--post-logout-redirect-uri', `${edgeUrl}/`,
      '--backchannel-logout-uri', `${edgeUrl}/api/auth/backchannel-logout`,
      ...(options.fronts?.[name] ? ['--issuer', front(name)] : []), '--people', String(options.people ?? 0), '--groups', String(options.groups ?? 0),
      ...(options.providerLog ? ['--log', options.providerLog] : []), ...(options.disabledFile ? ['--disabled', options.disabledFile] : []),
      '--access-token-ttl', String(options.accessTokenTtl ?? 300),
      '--client-auth', clientAuth, ...(keyed ? ['--client-jwks-uri', `${edgeUrl}/.well-known/vestibule/client-jwks.json`] : []),
      ...(options.resources ?? []).flatMap((resource) => ['--resource', resource]),
      ...(options.registration ? ['--registration'] : []),
      ...(options.machineClient ? ['--machine-client', options.machineClient] : []),
      '--state', join(stateDir, `${name}.json`),
    ],
    env: certificate && { NODE_EXTRA_CA_CERTS: certificate.certificate }, // for calls to the edge
    ready: async () => (await probe(`${url(name)}/.well-known/openid-configuration`)).status === 200,
  });
  for (const name of sessionNames) {
    plan.set(name, {
      command: binary('session-svc', profile),
      args: [],
      env: {
        ...provider,
        SESSION_LISTEN: `127.0.0.1:${ports[name]}`,
        SESSION_ADMIN_LISTEN: `127.0.0.1:${ports[`${name}Admin`]}`,
        SESSION_STORE: sessionStore,
        SESSION_ENCRYPTION_KEY_FILE: encryptionKey,
        ...options.sessionEnv,
      },
      ready: async () => (await probe(`${url(`${name}Admin`)}/readyz`)).status === 200,
    });
  }
  for (const name of edgeNames) {
    plan.set(name, {
      command: binary('auth-edge', profile),
      args: [],
      env: {
        ...provider,
        EDGE_LISTEN: `127.0.0.1:${ports[name]}`,
        EDGE_ADMIN_LISTEN: `127.0.0.1:${ports[`${name}Admin`]}`,
        EDGE_BASE_URL: edgeUrl,
        EDGE_SECRET_FILE: edgeSecret,
        EDGE_SESSION_SVC_URL: sessionNames.map(front).join(','),
        EDGE_ROUTES: options.routes ?? join(ROOT, 'dev/routes.toml'),
        ...(certificate && { EDGE_TLS_CERT_FILE: certificate.certificate, EDGE_TLS_KEY_FILE: certificate.key }),
        ...options.edgeEnv,
      },
      ready: async () => (await probe(`${url(`${name}Admin`)}/readyz`)).status === 200,
    });
  }

  const running = new Map();
  const groups = new Map(); // of processes with a memory limit
  const expected = new Set(); // processes that the caller ends on purpose
  let balancer;
  let hasEnded = false;

  async function start(name) {
    // A fault that begins while a test ends would leave a process behind.
    if (hasEnded) throw new Error(`the stack has ended: ${name} does not start`);
    const { command, args, env, ready } = plan.get(name);
    onStep(`starting ${name}`);
    await groups.get(name)?.remove();
    if (options.limits?.[name]) groups.set(name, limitMemory(options.limits[name]));
    const child = new Child(name, ...(groups.get(name)?.within(command, args) ?? [command, args]), {
      env: { ...baseEnv, ...env, ...options.env?.[name] },
      cwd: ROOT,
      logFile: join(stateDir, 'logs', `${name}.log`),
      onLine: options.onLine && ((line) => options.onLine(name, line)),
    });
    running.set(name, child);
    options.onStart?.(name, child.pid);
    expected.delete(name);
    child.exited.then((ended) => {
      if (!expected.has(name) && running.get(name) === child && child.wasReady) options.onExit?.(name, ended, child.tail(), () => start(name));
    });
    const explain = (what) => `${name} ${what}. The last it wrote:\n${child.tail() || '(nothing)'}`;
    const readyMs = options.readyMs ?? READY_MS;
    await until(readyMs, async () => {
      if (child.ended) throw new Error(explain(`ended with ${child.ended.signal ?? `code ${child.ended.code}`} instead of becoming ready`));
      return ready(child);
    }, () => explain(`was not ready after ${readyMs / 1000} s`));
    child.wasReady = true;
    return child;
  }

  async function kill(name, signal = 'SIGTERM') {
    expected.add(name);
    return running.get(name).stop(signal);
  }

  async function stop() {
    hasEnded = true;
    for (const name of plan.keys()) expected.add(name);
    await balancer?.stop();
    const inOrder = [edgeNames, sessionNames, ['idp', 'idp-2', 'redis']];
    for (const names of inOrder) {
      await Promise.all(names.map((name) => running.get(name)?.stop()));
    }
    for (const group of groups.values()) await group.remove();
    groups.clear();
    if (!options.stateDir) rmSync(stateDir, { recursive: true, force: true });
  }

  try {
    if (plan.has('redis')) await start('redis');
    await Promise.all([...plan.keys()].filter((name) => name in idps || sessionNames.includes(name)).map((name) => start(name)));
    await Promise.all(edgeNames.map((name) => start(name)));
    if (edges > 1) balancer = await startBalancer(ports.url, edgeNames.map((name) => ports[name]));
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    edgeUrl,
    edgeUrls: edgeNames.map((name) => edgeAt(ports[name])),
    issuer,
    otherIssuer: options.secondProvider && url('idp-2'),
    sessionUrls: sessionNames.map(url),
    adminUrls: Object.fromEntries([...edgeNames, ...sessionNames].map((name) => [name, url(`${name}Admin`)])),
    accounts: foreignProvider ? [] : ACCOUNTS.map(({ name, email, password }) => ({ name, email, password })),
    stateDir,
    secrets,
    store: sessionStore,
    names: [...plan.keys()],
    group: (name) => groups.get(name),
    pid: (name) => running.get(name)?.pid,
    logs: (name) => running.get(name)?.output ?? '',
    start,
    kill,
    async restart(name, signal) {
      await kill(name, signal);
      return start(name);
    },
    stop,
  };
}
