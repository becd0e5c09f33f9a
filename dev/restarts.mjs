// `make restarts`: sessions on every Redis and Valkey that Debian's releases have, which is then stopped, killed, or killed after a
// rewrite of its append-only file, with the users and the settings of the manifests. Ends by itself, with a table; exit code 1 if a
// session was lost or an ending undone.
//
//   node dev/restarts.mjs [--suites trixie,forky] [--restarts stopped,killed,rewritten] [--installed]
//
// Beside it stands what a bare `user default off` costs, which is why the manifests do not say so.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

import { Caller, creation } from './failover.mjs';
import { Child } from './lib/child.mjs';
import { Suite, unpacked } from './lib/debian.mjs';
import { freePort, until } from './lib/net.mjs';
import { ask } from './lib/redis-topology.mjs';
import { binary, ROOT } from './stack.mjs';
import { field, fields } from './tests/product/grpc.mjs';

const SUITES = ['bookworm', 'bookworm-security', 'bookworm-backports', 'trixie', 'trixie-security', 'trixie-backports', 'forky', 'sid'];
const ENGINES = ['redis', 'valkey'];
const RESTARTS = ['stopped', 'killed', 'rewritten'];
const SHIPPED = join(ROOT, 'k8s/components/redis/settings');
const BARE = 'user default off\n';

const SESSIONS = 200; // before the restart; a part of them after the rewrite, where there is one
const ENDED = 40; // of them are ended, and have to stay so
const START_MS = 20_000;
const LISTS_MS = 86_400_000; // what a suite has is asked once a day
const [OK, NOT_FOUND, UNAVAILABLE, DEADLINE_EXCEEDED] = [0, 5, 14, 4];
const ISSUER = 'http://127.0.0.1:9'; // nobody asks it anything

// ---------------------------------------------------------------- servers

/** Every release of both engines that the suites have, each version once: `{name, suite, command}`. */
export async function ofSuites(suites, say = () => {}) {
  const cache = join(ROOT, '.cache/debian');
  const servers = new Map();
  for (const name of suites) {
    const suite = new Suite(name, cache);
    const release = name.replace(/-.*/, ''); // whose libraries backports and updates use
    if (suite.age() > LISTS_MS) await suite.update(release === name ? [] : [release]);
    for (const engine of ENGINES) {
      const version = await suite.version(`${engine}-server`);
      if (!version) continue;
      const known = servers.get(`${engine} ${version}`);
      if (known) {
        known.suites.push(name);
        continue;
      }
      say(`${engine} ${version} of ${name}`);
      const folder = join(cache, 'unpacked', `${engine}-${version.replace(/[^\w.]+/g, '-')}`);
      await suite.unpack([`${engine}-server`, `${engine}-tools`], folder);
      servers.set(`${engine} ${version}`, { name: `${engine} ${version}`, suites: [name], command: unpacked(folder, `${engine}-server`) });
    }
  }
  return [...servers.values()];
}

/** What is installed on this machine. */
export const installed = (engine) => ({ name: `the installed ${engine}`, suites: [], command: [`${engine}-server`] });

/** A server with users, on a folder that outlives it. */
class Server {
  constructor({ command }, folder, users) {
    Object.assign(this, { command, folder, password: randomBytes(16).toString('hex') });
    const lines = users.split('\n').filter((line) => line.startsWith('user '));
    writeFileSync(join(folder, 'users.acl'), `${lines.join('\n').replaceAll('PASSWORDS', `>${this.password}`)}\n`);
  }

  /** Alone and without TLS, and otherwise as the manifests set it up. */
  async start() {
    this.port ??= await freePort();
    const [program, ...args] = this.command;
    const alone = ['--tls-replication', 'no', '--min-replicas-to-write', '0', '--bind', '127.0.0.1', '--port', String(this.port)];
    this.child = new Child('redis', program, [...args, join(SHIPPED, 'redis.conf'), ...alone, '--dir', this.folder, '--aclfile', join(this.folder, 'users.acl')]);
    await until(START_MS, async () => this.child.ended || (await this.ask('PING')).includes('+PONG'), () => `the server does not answer:\n${this.child.tail()}`);
    if (this.child.ended) throw new Error(`the server does not start:\n${this.child.tail()}`);
  }

  ask(command) {
    return ask(this.port, `AUTH administrator ${this.password}\r\n${command}`);
  }

  async rewrite() {
    await this.ask('BGREWRITEAOF');
    await until(START_MS, async () => /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(await this.ask('INFO persistence')), () => 'the rewrite does not end');
  }

  url(user) {
    return `redis://${user}:${this.password}@127.0.0.1:${this.port}`;
  }
}

// ---------------------------------------------------------------- one restart

const environment = (store, key) => ({
  PATH: process.env.PATH, SESSION_STORE: store, SESSION_ENCRYPTION_KEY: key, SESSION_ADMIN_LISTEN: 'off',
  OIDC_ISSUER_URL: ISSUER, OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: 'a secret of the client',
});

/** What `check-store` says of the default user, as the administrator. */
async function verdict(server, key) {
  const { stdout } = await promisify(execFile)(binary('session-svc'), ['check-store', '--json'], { env: environment(server.url('administrator'), key) }).catch((error) => error);
  return JSON.parse(stdout).checks?.find(({ name }) => name === 'default_user')?.result;
}

/** Creates sessions, ends some, restarts the server, and looks for all of them. */
export async function restart(engine, kind, users) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-restart-'));
  mkdirSync(join(folder, 'data'));
  const server = new Server(engine, folder, users);
  const key = randomBytes(32).toString('hex');
  let [service, caller] = [];
  try {
    await server.start();
    const listen = `127.0.0.1:${await freePort()}`;
    service = new Child('session', binary('session-svc'), [], { env: { ...environment(server.url('session-svc'), key), SESSION_LISTEN: listen } });
    caller = new Caller(`http://${listen}`);
    const answered = async (method, message) => until(START_MS, async () => {
      const answer = await caller.call(method, message);
      return ![UNAVAILABLE, DEADLINE_EXCEEDED].includes(answer.status) && answer;
    }, () => `the session service does not answer:\n${service.tail()}`);
    const sessions = [];
    const create = async (count) => {
      for (let at = 0; at < count; at += 1) {
        const { status, message } = await answered('CreateSession', creation(ISSUER, `person ${at % 20}`));
        if (status !== OK) throw new Error(`no session could be created: status ${status}`);
        sessions.push(fields(message)[1].toString());
      }
    };
    await create(SESSIONS / 2);
    if (kind === 'rewritten') await server.rewrite();
    await create(SESSIONS / 2);
    const ended = sessions.filter((_, at) => at % (SESSIONS / ENDED) === 0);
    for (const id of ended) await answered('EndSession', field(1, id));
    const found = async (id) => (await answered('GetSession', field(1, id))).status;
    const alive = sessions.filter((id) => !ended.includes(id));
    const said = await verdict(server, key);

    await server.child.stop(kind === 'stopped' ? 'SIGTERM' : 'SIGKILL');
    await server.start();
    let [after, undone] = [0, 0];
    for (const id of alive) after += (await found(id)) === OK;
    for (const id of ended) undone += (await found(id)) !== NOT_FOUND;
    return { before: alive.length, after, undone, said };
  } finally {
    caller?.close();
    await service?.stop();
    await server.child?.stop('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

const users = () => readFileSync(join(SHIPPED, 'users.acl'), 'utf8');
const bare = () => users().replace(/^user default .*$/m, BARE.trim());

/** Restarts servers in each way, and once with a bare `user default off`; gives what came of it, and what is wrong with that. */
export async function restarts(servers, kinds = RESTARTS, onResult = () => {}) {
  const wrong = [];
  for (const server of servers) {
    const without = await restart(server, 'killed', bare());
    const expected = without.after < without.before ? 'problem' : 'warning';
    if (without.said !== expected) wrong.push(`${server.name}: check-store says ${without.said} to a bare \`user default off\`, which loses ${without.before - without.after} sessions`);
    for (const kind of kinds) {
      const result = await restart(server, kind, users());
      onResult({ server, kind, ...result, lostBare: without.before - without.after });
      if (result.after < result.before) wrong.push(`${server.name} ${kind}: ${result.before - result.after} of ${result.before} sessions lost`);
      if (result.undone > 0) wrong.push(`${server.name} ${kind}: ${result.undone} endings undone`);
      if (result.said !== 'ok') wrong.push(`${server.name} ${kind}: check-store says ${result.said} to the users that are shipped`);
    }
  }
  return wrong;
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: {
    suites: { type: 'string', default: SUITES.join(',') }, restarts: { type: 'string', default: RESTARTS.join(',') }, installed: { type: 'boolean', default: false },
  } });
  const say = (line) => process.stdout.write(`${line}\n`);
  const servers = values.installed ? [installed('redis')] : await ofSuites(values.suites.split(','), say);
  say('| Server | Debian | Restart | Sessions before | after | Endings undone | Lost with a bare `user default off` |');
  say('|---|---|---|---|---|---|---|');
  const wrong = await restarts(servers, values.restarts.split(','), ({ server, kind, before, after, undone, lostBare }) => {
    say(`| ${server.name} | ${server.suites.join(', ')} | ${kind} | ${before} | ${after} | ${undone} | ${lostBare} of ${before} |`);
  });
  wrong.forEach((complaint) => say(`wrong: ${complaint}`));
  if (servers.length === 0) say('wrong: there is no server to restart');
  process.exitCode = wrong.length === 0 && servers.length > 0 ? 0 : 1;
}
