// `make run` and `make run-redis`: builds changes, starts everything on loopback, prints one URL, stops on Ctrl-C. It
// restarts a killed process; if one keeps ending, it prints its last output and stops the others.
//
// .run/ (VESTIBULE_RUN_DIR) keeps secrets (0600), the session store, the provider's sign-ins and logs. The services
// receive their settings (EDGE_*, SESSION_*, OIDC_*) of the environment; the addresses below follow them.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';

import { buildServices, buildWeb, checkTools, installPackages, Problem } from './lib/build.mjs';
import { freePort, portTaken } from './lib/net.mjs';
import { reviver } from './lib/revive.mjs';
import { ROOT, startStack } from './stack.mjs';

const redis = process.argv.includes('--redis');
const command = redis ? 'make run-redis' : 'make run';
const runDir = resolve(ROOT, process.env.VESTIBULE_RUN_DIR || '.run');

// [process port, description, setting that changes it, default]
const ADDRESSES = [
  [redis ? 'url' : 'edge', redis ? 'the balancer before the edges' : 'the edge', 'EDGE_LISTEN', 3000],
  ['edgeAdmin', 'the edge, admin', 'EDGE_ADMIN_LISTEN', 9300],
  ['session', 'the session service', 'SESSION_LISTEN', 50051],
  ['sessionAdmin', 'the session service, admin', 'SESSION_ADMIN_LISTEN', 9301],
  ...(process.env.OIDC_ISSUER_URL ? [] : [['idp', 'the development provider', 'VESTIBULE_IDP_LISTEN', 9000]]),
  ...(redis
    ? [
        ['redis', 'Redis', 'VESTIBULE_REDIS_LISTEN', 6379],
        ['edge', 'the first edge', 'VESTIBULE_EDGE_1_LISTEN', 3001],
        ['edge-2', 'the second edge', 'VESTIBULE_EDGE_2_LISTEN', 3002],
        ['edge-2Admin', 'the second edge, admin', 'VESTIBULE_EDGE_2_ADMIN_LISTEN', 9302],
        ['session-2', 'the second session service', 'VESTIBULE_SESSION_2_LISTEN', 50052],
        ['session-2Admin', 'the second session service, admin', 'VESTIBULE_SESSION_2_ADMIN_LISTEN', 9303],
      ]
    : []),
];

const started = Date.now();
const say = (text) => process.stdout.write(`[${((Date.now() - started) / 1000).toFixed(1).padStart(5)} s] ${text}\n`);

/** The ports to use; throws with the names of all taken or invalid ones. */
async function choosePorts() {
  const ports = {};
  const wrong = [];
  const uses = new Map();
  for (const [name, what, setting, normal] of ADDRESSES) {
    const text = process.env[setting] ?? `127.0.0.1:${normal}`;
    const [, host, port] = /^(127\.0\.0\.1|localhost):(\d{1,5})$/.exec(text) ?? [];
    if (!host || Number(port) < 1 || Number(port) > 65535) {
      wrong.push(`${setting}=${text}: ${command} stays on loopback, so this must be 127.0.0.1:PORT.`);
      continue;
    }
    ports[name] = Number(port);
    const other = uses.get(ports[name]);
    uses.set(ports[name], setting);
    if (other) wrong.push(`${setting} and ${other} both say port ${port}.`);
    else if (await portTaken(ports[name])) {
      wrong.push(`Port ${port} (${what}) is taken. Stop what uses it, or move it with ${setting}, for example:\n    ${setting}=127.0.0.1:${await freePort()} ${command}`);
    }
  }
  if (wrong.length > 0) throw new Problem(wrong.join('\n'));
  return ports;
}

/** Secrets of this machine; they stay the same, so that sessions outlive a restart. */
function secrets() {
  const file = join(runDir, 'secrets.json');
  mkdirSync(runDir, { recursive: true, mode: 0o700 });
  if (!existsSync(file)) {
    const fresh = { edge: randomBytes(32).toString('hex'), encryption: randomBytes(32).toString('hex'), client: randomBytes(32).toString('base64url') };
    writeFileSync(file, `${JSON.stringify(fresh, null, 2)}\n`, { mode: 0o600 });
  }
  return JSON.parse(readFileSync(file, 'utf8'));
}

function welcome(stack) {
  const lines = ['', `  Vestibule is running${redis ? ' on Redis, with two edges and two session services' : ''}. Open:`, '', `      ${stack.edgeUrl}`, ''];
  if (stack.accounts.length > 0) {
    const width = Math.max(...stack.accounts.map(({ email }) => email.length));
    lines.push('  and sign in with one of these:', '');
    for (const { email, password, name } of stack.accounts) lines.push(`      ${email.padEnd(width)}   ${password}   (${name})`);
    lines.push('', '  Switch accounts at /api/auth/login?prompt=select_account');
    lines.push('  Grace is an operator: she can see and end all sessions at /operator');
  } else {
    lines.push(`  Sign-in is at ${stack.issuer}`);
  }
  const processes = stack.names.map((name) => `${name} ${stack.pid(name)}`).join(', ');
  lines.push('', `  Processes: ${processes} (one that is killed is started again)`);
  lines.push(`  Logs: ${relative(process.cwd(), join(stack.stateDir, 'logs')) || '.'}    Stop: Ctrl-C`, '', '');
  return lines.join('\n');
}

/** Prints errors of the services, which are also in their logs. */
function showErrors(name, line) {
  if (/"level":"ERROR"|panicked at|^Error/i.test(line)) process.stdout.write(`${name}: ${line.slice(0, 2000)}\n`);
}

let stack;
let stopping = false;
async function stopAll(code, text) {
  if (stopping) process.exit(code || 130); // the second signal: exit at once, the reaper ends the children
  stopping = true;
  say(text);
  await stack?.stop();
  process.exit(code);
}
process.on('SIGINT', () => stopAll(0, 'stopping'));
process.on('SIGTERM', () => stopAll(0, 'stopping'));
process.on('SIGHUP', () => stopAll(0, 'stopping'));

try {
  checkTools();
  if (redis && spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status !== 0) {
    throw new Problem('make run-redis needs redis-server on the PATH (Debian: apt-get install redis-server).');
  }
  const ports = await choosePorts();
  await installPackages('dev/idp', say);
  await installPackages('web', say);
  await buildWeb(say);
  await buildServices(say);
  const stateDir = redis ? join(runDir, 'redis') : runDir;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  stack = await startStack({
    ports,
    stateDir,
    secrets: secrets(),
    edges: redis ? 2 : 1,
    sessionServices: redis ? 2 : 1,
    store: redis ? 'redis' : process.env.SESSION_STORE || 'file:',
    inheritSettings: true,
    sessionEnv: { SESSION_OPERATOR_SEARCH: process.env.SESSION_OPERATOR_SEARCH || 'true' },
    onStep: say,
    onLine: showErrors,
    onExit: reviver({ say, giveUp: (text) => stopAll(1, `${text}\nstopping the rest`), isStopping: () => stopping }),
  });
  if (!stopping) process.stdout.write(welcome(stack));
} catch (error) {
  if (!stopping) {
    process.stderr.write(`\n${error instanceof Problem ? error.message : (error.message ?? error)}\n`);
    process.exit(1);
  }
}
