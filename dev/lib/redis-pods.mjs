// Runs k8s/components/redis without a cluster: its scripts and settings start real servers and Sentinels on loopback,
// with separate folders and different ports. Ended processes are restarted, as the kubelet does.
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync, appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { issue, makeAuthority } from './authority.mjs';
import { Child } from './child.mjs';
import { freePort, pause, until } from './net.mjs';

const COMPONENT = fileURLToPath(new URL('../../k8s/components/redis', import.meta.url));
const USERS = ['session-svc', 'administrator', 'replication', 'sentinel'];
const SETTLED_MS = 60_000;
const GRACE_MS = 30_000; // processes that still run then are killed
const RESTART_MS = 300; // wait before a restart
const NAMES = ['localhost', '127.0.0.1'];

/** Writes files as the kubelet mounts a Secret: a folder behind the link `..data`, which is replaced as a whole. */
function mountFiles(folder, files) {
  mkdirSync(folder, { recursive: true });
  const version = `..${randomBytes(6).toString('hex')}`;
  mkdirSync(join(folder, version));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, version, name), text, { mode: 0o400 });
  symlinkSync(version, join(folder, '..data.new'));
  renameSync(join(folder, '..data.new'), join(folder, '..data'));
  for (const name of Object.keys(files)) if (!existsSync(join(folder, name))) symlinkSync(join('..data', name), join(folder, name));
}

class Pod {
  constructor(component, name, script, port) {
    Object.assign(this, { component, name, script, port, self: `localhost:${port}`, folder: join(component.folder, name), containers: {}, restarts: 0, log: '' });
    for (const folder of ['data', 'run']) mkdirSync(join(this.folder, folder), { recursive: true });
  }

  /** The variables of its containers. */
  get env() {
    const { component, folder } = this;
    return {
      PATH: process.env.PATH, SELF: this.self, SERVERS: component.servers.map(({ self }) => self).join(' '), SENTINELS: component.sentinels.map(({ self }) => self).join(' '),
      SETTINGS: component.settings, USERS: join(folder, 'users'), TLS: join(folder, 'tls'), DATA: join(folder, 'data'), RUN: join(folder, 'run'),
      EVERY_SECONDS: '1', TURN_SECONDS: '4', FOLLOW_EVERY: '4',
    };
  }

  /** Starts both containers, and restarts a container that ends. */
  start() {
    this.wanted = true;
    this.#run('server', [this.script]);
    this.#run('reload', ['reload.sh', this.script === 'start-redis.sh' ? 'redis' : 'sentinel']);
  }

  #run(container, [script, ...words]) {
    if (!this.wanted) return;
    const { component, env } = this;
    const child = new Child(`${this.name} ${container}`, component.shell[0], [...component.shell.slice(1), join(COMPONENT, 'scripts', script), ...words], {
      env, onLine: (line) => { this.log = `${this.log}${container}: ${line}\n`.slice(-200_000); },
    });
    this.containers[container] = child;
    child.exited.then(async () => {
      await pause(RESTART_MS);
      if (!this.wanted || this.containers[container] !== child) return;
      this.restarts += 1;
      this.#run(container, [script, ...words]);
    });
  }

  /** As `kubectl delete pod`: signals the first process of each container, and kills it after the grace period. */
  async stop() {
    this.wanted = false;
    for (const child of Object.values(this.containers)) if (!child.ended) process.kill(child.pid, 'SIGTERM');
    const late = setTimeout(() => Object.values(this.containers).forEach((child) => child.signal('SIGKILL')), GRACE_MS);
    await Promise.all(Object.values(this.containers).map((child) => child.exited));
    clearTimeout(late);
    rmSync(join(this.folder, 'run'), { recursive: true });
    mkdirSync(join(this.folder, 'run'));
  }

  /** As a node that loses power. */
  async kill() {
    this.wanted = false;
    await Promise.all(Object.values(this.containers).map((child) => child.stop('SIGKILL')));
    rmSync(join(this.folder, 'run'), { recursive: true });
    mkdirSync(join(this.folder, 'run'));
  }

  /** Empties its disk while it is down. */
  emptyDisk() {
    rmSync(join(this.folder, 'data'), { recursive: true });
    mkdirSync(join(this.folder, 'data'));
  }

  /** A server's response to a user, over TLS; empty without a response. */
  ask(words, { user = 'administrator', password = this.component.passwords[user]?.[0] ?? 'probe' } = {}) {
    return new Promise((resolve) => {
      execFile('redis-cli', [...this.login(user), ...words], { env: { ...process.env, REDISCLI_AUTH: password }, timeout: 3_000 }, (_, out) => resolve(out.trim()));
    });
  }

  /** Opens a connection that stays: {ask(command), close()}. `client id` shows whether it is still the first one. */
  connect(user) {
    const child = spawn('redis-cli', this.login(user), { env: { ...process.env, REDISCLI_AUTH: this.component.passwords[user][0] }, stdio: ['pipe', 'pipe', 'ignore'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return { ask: async (command) => (child.stdin.write(`${command}\n`), (await lines.next()).value), close: () => child.stdin.end() };
  }

  login(user) {
    const tls = join(this.folder, 'tls');
    return ['-h', 'localhost', '-p', String(this.port), '--tls', '--cacert', join(tls, 'ca.crt'), '--cert', join(tls, 'tls.crt'), '--key', join(tls, 'tls.key'), '--user', user, '--no-auth-warning'];
  }

  async role() {
    return (await this.ask(['role'])).split('\n')[0];
  }

  /** The serial number of the certificate that new connections receive. */
  serial() {
    return new Promise((resolve) => {
      const client = execFile('openssl', ['s_client', '-connect', `localhost:${this.port}`], { timeout: 3_000 }, (_, out) => {
        const scratch = join(this.folder, 'shown.pem');
        writeFileSync(scratch, /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/.exec(out)?.[0] ?? '');
        execFile('openssl', ['x509', '-noout', '-serial', '-in', scratch], (_error, serial) => resolve(serial.trim()));
      });
      client.stdin.end();
    });
  }
}

class Component {
  constructor(folder, shell) {
    Object.assign(this, { folder, shell, settings: join(folder, 'settings'), servers: [], sentinels: [] });
    cpSync(join(COMPONENT, 'settings'), this.settings, { recursive: true });
    for (const name of ['redis.conf', 'sentinel.conf']) appendFileSync(join(this.settings, name), '\nbind 127.0.0.1 -::1\n'); // only on this machine
    this.passwords = Object.fromEntries(USERS.map((user) => [user, [randomBytes(16).toString('hex')]]));
    this.authority = makeAuthority(join(folder, 'authority'));
    issue(this.authority, join(folder, 'client'), NAMES, ['clientAuth']);
  }

  get pods() {
    return [...this.servers, ...this.sentinels];
  }

  /** Writes a new certificate for every pod, or the existing one. */
  mountCertificates() {
    issue(this.authority, join(this.folder, 'server'), NAMES, ['serverAuth', 'clientAuth']);
    const files = Object.fromEntries(['tls.crt', 'tls.key', 'ca.crt'].map((name) => [name, readFileSync(join(this.folder, 'server', name))]));
    for (const pod of this.pods) mountFiles(join(pod.folder, 'tls'), files);
  }

  mountPasswords() {
    const files = Object.fromEntries(USERS.map((user) => [user, `${this.passwords[user].join('\n')}\n`]));
    for (const pod of this.pods) mountFiles(join(pod.folder, 'users'), files);
  }

  /** The address for a user, as in a Secret. */
  address(user = 'session-svc') {
    const client = join(this.folder, 'client');
    const [password] = this.passwords[user];
    return `rediss-sentinel://${user}:${password}@${this.sentinels.map(({ self }) => self).join(',')}/sessions?sentinel_user=${user}&sentinel_password=${password}`
      + `&ca_file=${client}/ca.crt&cert_file=${client}/tls.crt&key_file=${client}/tls.key`;
  }

  /** The master according to a majority of the Sentinels. */
  async master() {
    const named = await Promise.all(this.sentinels.map(async (one) => (await one.ask(['sentinel', 'get-master-addr-by-name', 'sessions'])).split('\n')[1]));
    return this.servers.find(({ port }) => named.filter((one) => one === String(port)).length * 2 > this.sentinels.length);
  }

  /** Waits until all agree: a named master, replicas without lag, and Sentinels that know all of them. */
  settled() {
    const agreed = async () => {
      const master = await this.master();
      if (!master || (await master.role()) !== 'master') return undefined;
      const lags = (await master.ask(['info', 'replication'])).match(/state=online,offset=\d+,lag=[01]\b/g) ?? [];
      const replicas = await Promise.all(this.servers.filter((pod) => pod !== master).map((pod) => pod.ask(['role'])));
      const known = await Promise.all(this.sentinels.map((pod) => pod.ask(['sentinel', 'master', 'sessions'])));
      return lags.length === replicas.length
        && replicas.every((text) => text.startsWith(`slave\nlocalhost\n${master.port}\nconnected`))
        && known.every((text) => /^num-slaves\n2$/m.test(text) && /^num-other-sentinels\n2$/m.test(text) && /^flags\nmaster$/m.test(text)) && master;
    };
    return until(SETTLED_MS, agreed, () => `the servers do not agree:\n${this.pods.map(({ name, log }) => `${name}\n${log.split('\n').slice(-8).join('\n')}`).join('\n')}`);
  }

  async stop() {
    await Promise.all(this.pods.map((pod) => pod.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts three servers and three Sentinels in parallel. `shell` runs the scripts. */
export async function startRedisPods({ shell = ['sh'] } = {}) {
  const component = new Component(mkdtempSync(join(tmpdir(), 'vestibule-redis-pods-')), shell);
  for (const at of [0, 1, 2]) component.servers.push(new Pod(component, `redis-${at}`, 'start-redis.sh', await freePort()));
  for (const at of [0, 1, 2]) component.sentinels.push(new Pod(component, `redis-sentinel-${at}`, 'start-sentinel.sh', await freePort()));
  component.mountCertificates();
  component.mountPasswords();
  try {
    for (const pod of component.pods) pod.start();
    await component.settled();
  } catch (error) {
    await component.stop();
    throw error;
  }
  return component;
}
