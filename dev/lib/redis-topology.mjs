// Redis with replicas on loopback, behind Sentinels or as a cluster, with planned and accidental failovers.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { Child } from './child.mjs';
import { freePort, until } from './net.mjs';

const MASTER = 'sessions';
const AGREEMENT_MS = 60_000; // until servers know each other after a start or a failover
const ASK_MS = 2_000;
const EVENTS = 'vestibule:e'; // in a cluster, the master with this key fails; it holds a share of the events

// The settings that docs/operating.md recommends.
const SETTINGS = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '3', '--repl-diskless-sync-delay', '0'];
const DOWN_AFTER_MS = 1_500;
const REPLICAS = 2;
const MASTERS = 3;

/** A server's response to an inline command; empty without a response. */
export function ask(port, command) {
  return new Promise((resolve) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.end(`${command}\r\n`));
    socket.setTimeout(ASK_MS, () => socket.destroy());
    socket.setEncoding('utf8').on('data', (chunk) => { text += chunk; }).on('error', () => {}).on('close', () => resolve(text));
  });
}

class Server {
  constructor(folder, name, port, args, { front, onStart, logs } = {}) {
    Object.assign(this, { folder: join(folder, name), name, port, args, front: front ?? port, onStart, logFile: logs && join(logs, `${name}.log`) });
    mkdirSync(this.folder);
  }

  async start() {
    this.child = new Child(this.name, 'redis-server', [...this.args, '--port', String(this.port), '--dir', this.folder], { logFile: this.logFile });
    this.onStart?.(this.name, this.child.pid);
    await until(AGREEMENT_MS, () => ask(this.port, 'PING'), () => `${this.name} does not start: ${this.child.tail()}`);
  }

  stop() {
    return this.child?.stop('SIGKILL');
  }

  /** Removes a server as an accident would: kills or freezes it. */
  async goDown(kind) {
    this.frozen = kind === 'frozen';
    if (this.frozen) this.child.signal('SIGSTOP');
    else await this.stop();
  }

  async comeBack() {
    if (this.frozen) this.child.signal('SIGCONT');
    else await this.start();
  }
}

const PLAIN = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...SETTINGS];
const server = async (folder, name, args) => new Server(folder, name, await freePort(), [...PLAIN, ...args]);

/** A server, behind the caller's port if there is one; `argsOf` receives that port. */
async function fronted(folder, name, argsOf, { front, onStart, logs }) {
  const port = await freePort();
  const seen = (await front?.(name, port)) ?? port;
  return new Server(folder, name, port, argsOf(seen), { front: seen, onStart, logs });
}

const online = (facts) => (facts.match(/state=online/g) ?? []).length;

/** A master, two replicas and three Sentinels. */
async function sentinel(folder, options) {
  const announced = (seen) => ['--replica-announce-ip', '127.0.0.1', '--replica-announce-port', String(seen)];
  const first = await fronted(folder, 'data-1', (seen) => [...PLAIN, ...announced(seen)], options);
  const servers = [first];
  for (let at = 0; at < REPLICAS; at += 1) {
    servers.push(await fronted(folder, `data-${at + 2}`, (seen) => [...PLAIN, ...announced(seen), '--replicaof', '127.0.0.1', String(first.front)], options));
  }
  const sentinels = [];
  for (let at = 1; at <= 3; at += 1) {
    const file = join(folder, `sentinel-${at}`, 'sentinel.conf');
    const watch = await fronted(folder, `sentinel-${at}`, () => [file, '--sentinel', '--bind', '127.0.0.1'], options);
    writeFileSync(file, [
      'sentinel announce-ip 127.0.0.1', `sentinel announce-port ${watch.front}`,
      `sentinel monitor ${MASTER} 127.0.0.1 ${first.front} 2`, `sentinel down-after-milliseconds ${MASTER} ${options.downAfterMs ?? DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${MASTER} 3000`, '',
    ].join('\n'));
    sentinels.push(watch);
  }
  const named = async (one) => Number((await ask(one.port, `SENTINEL GET-MASTER-ADDR-BY-NAME ${MASTER}`)).split('\r\n')[4]);
  const master = async () => servers.find((one) => one.front === ports.at(0)) ?? first;
  let ports = [];
  return {
    servers, sentinels,
    url: `redis-sentinel://${sentinels.map((one) => `127.0.0.1:${one.front}`).join(',')}/${MASTER}`,
    async whole() {
      ports = await Promise.all(sentinels.map(named));
      const facts = await ask((await master()).port, 'INFO replication');
      const knowing = await Promise.all(sentinels.map((one) => ask(one.port, `SENTINEL MASTER ${MASTER}`)));
      const knows = (text) => /num-slaves\r\n\$\d+\r\n2\r\n/.test(text) && /num-other-sentinels\r\n\$\d+\r\n2\r\n/.test(text) && !/_down|failover_in_progress/.test(text);
      return new Set(ports).size === 1 && online(facts) === REPLICAS && knowing.every(knows);
    },
    master,
    async fail(kind) {
      const old = await master();
      if (kind === 'planned') await ask(sentinels[0].port, `SENTINEL FAILOVER ${MASTER}`);
      else await old.goDown(kind);
      return old;
    },
  };
}

/** Three masters with two replicas each. */
async function cluster(folder) {
  const servers = [];
  for (let at = 0; at < MASTERS * (1 + REPLICAS); at += 1) {
    const bus = await freePort();
    servers.push(await server(folder, `node-${at + 1}`, [
      '--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-port', String(bus), '--cluster-config-file', 'nodes.conf', '--cluster-require-full-coverage', 'no',
    ]));
  }
  const hosts = servers.map((one) => `127.0.0.1:${one.port}`);
  const roles = async () => Promise.all(servers.map(async (one) => ({ one, facts: await ask(one.port, 'INFO replication'), about: await ask(one.port, 'CLUSTER INFO') })));
  const master = async () => {
    for (const { one, facts } of await roles()) {
      if (facts.includes('role:master') && !(await ask(one.port, `EXISTS ${EVENTS}`)).startsWith('-')) return one;
    }
    throw new Error('no master has the events');
  };
  return {
    servers, sentinels: [],
    url: `redis-cluster://${hosts.join(',')}`,
    async join() {
      await promisify(execFile)('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-replicas', String(REPLICAS), '--cluster-yes']);
    },
    async whole() {
      const all = await roles();
      const masters = all.filter(({ facts }) => facts.includes('role:master'));
      return masters.length === MASTERS && masters.every(({ facts }) => online(facts) >= 1)
        && all.every(({ facts, about }) => /cluster_state:ok/.test(about) && /cluster_slots_ok:16384/.test(about) && /role:master|master_link_status:up/.test(facts));
    },
    master,
    async fail(kind) {
      const old = await master();
      if (kind === 'planned') {
        const [, port] = /slave0:ip=[^,]*,port=(\d+),state=online/.exec(await ask(old.port, 'INFO replication'));
        await ask(Number(port), 'CLUSTER FAILOVER');
      } else await old.goDown(kind);
      return old;
    },
  };
}

/**
 * Starts servers of a topology (`sentinel`, `cluster`) and waits until a failover would work.
 * @param {(name: string, port: number) => Promise<number>} [options.front] starts a proxy before a server
 * @param {string} [options.logs] a folder for logs of servers behind Sentinels (none)
 * @param {number} [options.downAfterMs] silence after which Sentinels consider a server down (1,500)
 * @param {number} [options.agreementMs] time for servers to agree (60,000)
 * @param {(name: string, pid: number) => void} [options.onStart] called when a server starts
 */
export async function startTopology(which, options = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-redis-'));
  const topology = await { sentinel, cluster }[which](folder, options);
  const all = [...topology.servers, ...topology.sentinels];
  const settled = () => until(options.agreementMs ?? AGREEMENT_MS, topology.whole, () => `the servers do not agree:\n${all.map((one) => one.child.tail(5)).join('\n')}`);
  const stop = async () => {
    await Promise.all(all.map((one) => one.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const one of all) await one.start();
    await topology.join?.();
    await settled();
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: topology.url, servers: topology.servers, sentinels: topology.sentinels, master: topology.master, fail: topology.fail, settled, stop };
}
