// Every link between two processes is a TCP proxy that can cut it, hold bytes back (in one or both directions) or
// delay them. Each process has one proxy port. The proxy identifies the client process: a fault applies to one pair.
import { once } from 'node:events';
import net from 'node:net';

import { Peers } from './peer.mjs';

const HELD_MAX_BYTES = 1 << 20; // per direction of a connection; the sender keeps the rest
const FORWARD = 'forward'; // from the client to the listener
const BACK = 'back';

/** The fault of a link; none at first. */
const whole = () => ({ isCut: false, held: new Set(), delayMs: 0 });

/** One direction of a connection: bytes in order, each after its delay, none while the link holds them. */
class Way {
  constructor(source, target, link, direction) {
    Object.assign(this, { source, target, link, direction, waiting: [], bytes: 0, free: 0 });
    source.on('data', (chunk) => this.take(chunk));
    source.on('end', () => this.take(undefined));
    target.on('drain', () => source.resume());
  }

  /** Queues a chunk; `undefined` marks the end of the stream. */
  take(chunk) {
    this.free = Math.max(this.free, performance.now() + this.link.delayMs);
    this.waiting.push({ chunk, due: this.free });
    this.bytes += chunk?.length ?? 0;
    if (this.bytes > HELD_MAX_BYTES) this.source.pause();
    this.flush();
  }

  flush() {
    clearTimeout(this.timer);
    while (this.waiting.length > 0 && !this.link.held.has(this.direction)) {
      const [{ chunk, due }] = this.waiting;
      const early = due - performance.now();
      if (early > 0) {
        this.timer = setTimeout(() => this.flush(), early);
        return;
      }
      this.waiting.shift();
      this.bytes -= chunk?.length ?? 0;
      if (chunk === undefined) this.target.end();
      else if (!this.target.destroyed && !this.target.write(chunk)) this.source.pause();
    }
    if (this.bytes <= HELD_MAX_BYTES && !this.target.writableNeedDrain) this.source.resume();
  }
}

export class Network {
  constructor() {
    Object.assign(this, { peers: new Peers(), links: new Map(), servers: [], connections: new Set() });
  }

  /** Registers a process that was started. */
  know(name, pid) {
    this.peers.pids[name] = pid;
  }

  /** The state of the link from `from` to `to`. */
  link(from, to) {
    const name = `${from}>${to}`;
    if (!this.links.has(name)) this.links.set(name, whole());
    return this.links.get(name);
  }

  /** Opens a proxy port for the port `target`. `only` names its one client process, `among` the candidates. */
  async front(to, target, { only, among = [] }) {
    const server = net.createServer({ allowHalfOpen: true }, async (client) => {
      client.on('error', () => {});
      const from = only ?? (among.length > 0 ? await this.peers.of(client, among) : undefined);
      const link = this.link(from ?? 'others', to);
      if (client.destroyed) return;
      if (link.isCut) client.resetAndDestroy();
      else this.join(client, target, link);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.servers.push(server);
    return server.address().port;
  }

  join(client, target, link) {
    const service = net.connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
    const connection = { client, service, link, ways: [new Way(client, service, link, FORWARD), new Way(service, client, link, BACK)] };
    this.connections.add(connection);
    for (const socket of [client, service]) {
      socket.setNoDelay(true).on('error', () => this.drop(connection)).on('close', () => this.closed(connection));
    }
  }

  /** One side has closed; the other side receives the close when the link lets it through. */
  closed(connection) {
    const { client, service, link, ways } = connection;
    if (client.destroyed && service.destroyed) return void this.connections.delete(connection);
    if (link.held.size === 0 && ways.every(({ waiting }) => waiting.length === 0)) this.drop(connection);
    else connection.isHalf = true;
    return undefined;
  }

  drop(connection) {
    if (connection.link.held.size > 0) {
      connection.isHalf = true;
      return;
    }
    this.connections.delete(connection);
    connection.ways.forEach(({ timer }) => clearTimeout(timer));
    connection.client.destroy();
    connection.service.destroy();
  }

  /** Breaks every connection of the link, and refuses new ones. */
  cut(from, to) {
    const link = this.link(from, to);
    link.isCut = true;
    for (const connection of [...this.connections].filter((one) => one.link === link)) {
      connection.client.resetAndDestroy();
      connection.service.resetAndDestroy();
      this.connections.delete(connection);
    }
  }

  /** Holds bytes back: `forward`, `back`, or both by default. Nothing is refused, nothing arrives. */
  hold(from, to, direction) {
    for (const one of direction ? [direction] : [FORWARD, BACK]) this.link(from, to).held.add(one);
  }

  delay(from, to, ms) {
    this.link(from, to).delayMs = ms;
  }

  /** Restores the link; the held bytes arrive. */
  heal(from, to) {
    const link = Object.assign(this.link(from, to), { isCut: false, delayMs: 0 });
    link.held.clear();
    for (const connection of [...this.connections].filter((one) => one.link === link)) {
      connection.ways.forEach((way) => way.flush());
      if (connection.isHalf) this.drop(connection);
    }
  }

  stop() {
    this.servers.forEach((server) => server.close());
    for (const { client, service } of this.connections) {
      client.destroy();
      service.destroy();
    }
  }
}
