// Release programs, and the servers around them during a measurement.
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { buildWeb, checkTools, installPackages, run } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';
import { freePort, portTaken, probe, until } from '../../dev/lib/net.mjs';
import { binary, startStack } from '../../dev/stack.mjs';
import { Client } from '../../dev/tests/product/client.mjs';
import { installDebian } from './debian.mjs';
import { openLoopTool } from './open_loop.mjs';

const TARGET = 'x86_64-unknown-linux-gnu';

/** The folder of release programs below the target directory, and that of the program for one machine. */
export const PROFILE = `${TARGET}/release`;
export const SMALL = `${TARGET}/small`;

const TOOLS = { wrk: 'wrk', h2load: 'nghttp2-client', 'redis-server': 'redis-server', nginx: 'nginx-light', chromium: 'chromium' };

/** Builds the programs of the chosen lines and installs the load generators. */
export async function prepare(say, chosen) {
  checkTools();
  const missing = Object.entries(TOOLS).filter(([command]) => spawnSync('which', [command]).status !== 0).map(([, name]) => name);
  if (chosen.includes('one_program') && !existsSync('/usr/lib/apache2/modules/mod_auth_openidc.so')) missing.push('apache2-bin', 'libapache2-mod-auth-openidc');
  if (missing.length > 0) await installDebian(missing, say);
  if (chosen.includes('latency')) await openLoopTool(say);
  await installPackages('dev/idp', say);
  await installPackages('web', say);
  await buildWeb(say);
  say('building the services (release; takes many minutes the first time)');
  const env = { ...process.env, RUSTFLAGS: '-C target-feature=+crt-static' };
  await run('cargo', ['build', '--locked', '--release', '--target', TARGET, '-p', 'auth-edge', '-p', 'session-svc', '-p', 'bound'], { env });
  if (chosen.includes('one_program')) await run('cargo', ['build', '--locked', '--profile', 'small', '--target', TARGET, '-p', 'vestibule'], { env });
  // Examples need the features of tests, so cargo compiles most crates again.
  if (chosen.includes('growth')) await run('cargo', ['build', '--locked', '--release', '--target', TARGET, '-p', 'session-svc', '--example', 'store_figures'], { env });
}

/** A stack of release programs. `log` is their log level: `warn` leaves the access record out on both sides. */
export const releaseStack = ({ log = 'warn', edgeEnv, sessionEnv, ...options } = {}) => startStack({
  ...options,
  profile: PROFILE,
  edgeEnv: { RUST_LOG: log, EDGE_RATE_LIMIT_LOGIN: '0', ...edgeEnv },
  // One account stands for many users: a session limit per user would end a session with every sign-in.
  sessionEnv: { RUST_LOG: log, SESSION_MAX_PER_SUBJECT: '0', ...sessionEnv },
});

/** Signs one user in. Returns the cookie header of the session. */
export async function signedIn(stack, options) {
  const person = new Client();
  await person.signIn(stack, options);
  const [name, value] = person.sessionCookie(stack);
  return { person, cookie: `${name}=${value}`, sessionId: value.split('.')[0] };
}

/** The processes that answer requests, as [[name, pid], …]. */
export const serving = (stack) => stack.names.filter((name) => name !== 'idp').map((name) => [name, stack.pid(name)]);

/** Bare axum that answers with this many bytes. */
export async function startBound(bytes) {
  const port = await freePort();
  const child = bound('json', port, bytes);
  const url = `http://127.0.0.1:${port}/`;
  await answers(url, child);
  return { url, pids: [['bound', child.pid]], stop: () => child.stop() };
}

/** Bare axum that asks bare tonic that reads this many bytes from Redis. */
export async function startChain(bytes) {
  const [edge, session, redis] = [await freePort(), await freePort(), await freePort()];
  const children = [new Child('redis', 'redis-server', ['--port', String(redis), '--bind', '127.0.0.1', '--save', ''])];
  const stop = async () => { for (const child of children.toReversed()) await child.stop(); };
  try {
    await until(5_000, () => portTaken(redis), () => `redis-server did not start: ${children[0].tail()}`);
    await new Promise((resolve, reject) => {
      const socket = connect(redis, '127.0.0.1').on('error', reject);
      socket.once('data', () => socket.end(resolve)).write(`SET bound ${'1'.repeat(bytes)}\r\n`);
    });
    children.push(bound('session', session, `redis://127.0.0.1:${redis}`), bound('edge', edge, `127.0.0.1:${session}`));
    const url = `http://127.0.0.1:${edge}/`;
    await answers(url, children[2]);
    const sessionUrl = `http://127.0.0.1:${session}/bound.Session/Get`;
    return { url, sessionUrl, pids: ['redis', 'session', 'edge'].map((name, at) => [name, children[at].pid]), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const bound = (role, port, target) => new Child(`bound ${role}`, binary('bound', PROFILE), [role, `127.0.0.1:${port}`, String(target)]);

const answers = (url, child) => until(5_000, async () => (await probe(url)).status === 200, () => `the bound did not start: ${child.tail()}`);

/**
 * nginx that passes all requests to our server: by plain `proxy_pass`, which opens a connection for each request, or
 * over kept connections, which needs an `upstream` block and two more directives.
 */
export async function startNginx(folder, upstream, { kept = false } = {}) {
  const port = await freePort();
  const file = join(folder, `nginx-${port}.conf`);
  const { host } = new URL(upstream);
  const [block, pass] = kept
    ? [`upstream small { server ${host}; keepalive 64; }`, 'proxy_pass http://small; proxy_http_version 1.1; proxy_set_header Connection "";']
    : ['', `proxy_pass http://${host};`];
  writeFileSync(file, `worker_processes 2; daemon off; pid ${folder}/nginx-${port}.pid; error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  ${block}
  server { listen 127.0.0.1:${port}; location / { ${pass} } }
}
`);
  const child = new Child('nginx', 'nginx', ['-c', file, '-e', 'stderr']);
  const url = `http://127.0.0.1:${port}/`;
  await until(5_000, async () => (await probe(url)).status === 200, () => `nginx did not start: ${child.tail()}`);
  const workers = spawnSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' }).stdout.trim().split('\n').map(Number);
  return { url, pids: [child.pid, ...workers].map((pid, at) => [`nginx-${at}`, pid]), stop: () => child.stop() };
}
