// One person's browser. It records every request in the history, and reaches the product through a named edge, as
// if a balancer had chosen that edge.
import http from 'node:http';
import net from 'node:net';

import { now } from '../lib/clock.mjs';
import { Client } from '../tests/product/client.mjs';
import { nameOf } from './history.mjs';

const SILENT_MS = 20_000; // longer than any fault holds a link, and than any deadline of the edge
const PROOF = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin' };
const EMPTY_MESSAGE = '\0'.repeat(5); // gRPC-Web: a frame without content

/** Keeps connections open. The product's address leads to one edge; the provider's link never breaks. */
function agentTo(world, edge) {
  const agent = new http.Agent({ keepAlive: true });
  agent.createConnection = ({ port }) => {
    const isProvider = Number(port) === world.fronts.idp;
    const socket = net.connect({ [world.fronts.url]: world.fronts[edge], [world.fronts.idp]: world.ports.idp }[port], '127.0.0.1');
    return Object.assign(socket, { isProvider }).setNoDelay(true).setTimeout(SILENT_MS, () => socket.destroy());
  };
  // Node's servers close a connection after five idle seconds, even if a request is on its way.
  agent.keepSocketAlive = (socket) => !socket.isProvider && http.Agent.prototype.keepSocketAlive.call(agent, socket);
  return agent;
}

export class Browser {
  constructor(world, history, account, name) {
    Object.assign(this, { world, history, account, name, client: new Client(), had: new Map() }); // had: session → cookie, of all there ever were
    this.agents = Object.fromEntries(world.edges.map((edge) => [edge, agentTo(world, edge)]));
  }

  /** The session that its cookie names; undefined without a cookie. */
  get session() {
    const [, value] = this.client.sessionCookie(this.world.stack) ?? [];
    return value && nameOf(this.idOf(value));
  }

  idOf(value) {
    return decodeURIComponent(value).split('.')[0];
  }

  /** The session ID, for operator calls. */
  get sessionId() {
    const [, value] = this.client.sessionCookie(this.world.stack) ?? [];
    return value && this.idOf(value);
  }

  get url() {
    return this.world.stack.edgeUrl;
  }

  /** Sends one request; returns the event with the parts of the response to judge. */
  ask(kind, edge, path, { method = 'GET', headers = {}, body, about = () => ({}), session = this.session } = {}) {
    return this.record({ kind, edge, session }, async (event) => {
      const answer = await this.client.fetch(this.url + path, { method, body, agent: this.agents[edge], headers: { accept: 'application/json', ...headers } });
      Object.assign(event, { status: answer.status, ...judged(answer), ...about(answer), set: this.cookieIn(answer) });
    });
  }

  /** Records a request: `send` completes its event. */
  async record(known, send) {
    const event = { type: 'request', who: this.account.sub, browser: this.name, session: this.session, begin: now(), ...known };
    try {
      await send(event);
    } catch (error) {
      Object.assign(event, { status: 0, error: error.code ?? error.message.split('\n')[0].slice(0, 200) });
    }
    event.end = now();
    return this.history.add(event);
  }

  /** The effect of a response on the session cookie: none, cleared, or a new session. */
  cookieIn(answer) {
    const line = answer.headers.getSetCookie().find((text) => /^(__\w+-)?session=/.test(text));
    if (!line) return undefined;
    const value = line.slice(line.indexOf('=') + 1, line.indexOf(';'));
    return value ? nameOf(this.idOf(value)) : 'cleared';
  }

  me(edge) {
    return this.ask('me', edge, '/api/auth/me', { about: ({ status, json }) => (status === 200 ? { sub: json().sub } : {}) });
  }

  /** Sends a request with the cookie of an earlier session. */
  lookAt(edge, cookie) {
    const session = nameOf(this.idOf(cookie.slice(cookie.indexOf('=') + 1)));
    return this.ask('me', edge, '/api/auth/me', { session, headers: { cookie }, about: ({ status, json }) => (status === 200 ? { sub: json().sub } : {}) });
  }

  status(edge) {
    return this.ask('status', edge, '/api/auth/status', { about: ({ status, json }) => (status === 200 ? { state: json().state } : {}) });
  }

  app(edge) {
    return this.ask('app', edge, '/app/echo', { about: ({ status, json }) => (status === 200 ? json() : {}) });
  }

  signOut(edge) {
    return this.ask('sign-out', edge, '/api/auth/logout', { headers: { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none' } });
  }

  endOthers(edge) {
    return this.ask('end-others', edge, '/session.v1.BrowserSessionService/EndMyOtherSessions', {
      method: 'POST', body: EMPTY_MESSAGE, headers: { ...PROOF, 'content-type': 'application/grpc-web+proto', accept: 'application/grpc-web+proto' },
      about: ({ headers, text }) => ({ grpc: Number(headers.get('grpc-status') ?? /grpc-status: ?(\d+)/.exec(text)?.[1] ?? -1) }),
    });
  }

  /** Signs in as a person new to the provider and calls `onReturn` on return. Replaces an existing session. */
  async signIn(edge, onReturn = () => {}) {
    this.client.jars.delete(this.world.stack.issuer);
    return this.record({ kind: 'sign-in', edge }, async (event) => {
      this.client.agent = this.agents[edge];
      const callback = await this.client.authorize(this.world.stack, { account: this.account });
      event.returned = now();
      onReturn();
      event.code = nameOf(new URL(callback).searchParams.get('code') ?? '');
      const answer = await this.client.navigate(callback);
      Object.assign(event, { status: answer.status, ...judged(answer), set: this.cookieIn(answer) });
      if (this.session) this.had.set(this.session, this.client.sessionCookie(this.world.stack).join('='));
    });
  }

  /** Signs out at the provider alone, which then notifies the edge. */
  signOutAtProvider() {
    return this.record({ kind: 'provider-sign-out' }, async (event) => {
      const page = await this.client.navigate(`${this.world.stack.issuer}/session/end`);
      event.status = page.status; // while the provider starts there is no form to send
      if (page.status === 200) {
        const xsrf = /name="xsrf" value="(\w+)"/.exec(page.text)?.[1] ?? '';
        const answer = await this.client.navigate(`${this.world.stack.issuer}/session/end/confirm`, { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) });
        event.status = answer.status;
      }
    });
  }

  close() {
    Object.values(this.agents).forEach((agent) => agent.destroy());
  }
}

/** The parts of each response that the checker judges. */
function judged({ status, headers, text }) {
  const isJson = headers.get('content-type')?.startsWith('application/json');
  const error = status >= 400 && isJson ? JSON.parse(text).error : undefined;
  return { error, retryAfter: headers.get('retry-after') !== null || undefined };
}
