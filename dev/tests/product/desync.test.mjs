// Requests whose end an upstream could see elsewhere than the edge, as bytes, to real servers: nginx, Apache, HAProxy, Node and Python.
// What is checked is the next person's request on the connections that were used: it arrives whole, with its own path and identity.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Child } from '../../lib/child.mjs';
import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';
import { DATA, END_HEADERS, END_STREAM, HEADERS, field, frame, speak } from './frames.mjs';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];
const ANSWERS = ['early', 'late', 'close']; // before the body, after it, never
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Auth-Subject: admin\r\n\r\n';
const CHUNKS = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
const LENGTH = `Content-Length: ${SMUGGLED.length}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';

/** How a request says where it ends, and what follows. */
const FRAMINGS = {
  neither: ['', ''],
  'a length': [LENGTH, SMUGGLED],
  'a length without its body': [LENGTH, ''],
  chunks: [CHUNKED, CHUNKS],
  both: [`${LENGTH}${CHUNKED}`, CHUNKS],
};
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
const PREFLIGHT = 'Origin: https://evil.example\r\nAccess-Control-Request-Method: PUT\r\n';

/** Over HTTP/2 the end of the stream is the end of the body (RFC 9113, section 8.1.1): fields that say otherwise, and the body. */
const OVER_HTTP2 = {
  'a length beyond the body': [[['content-length', '60']], 'hello'],
  'a length short of the body': [[['content-length', '1']], 'hello'],
  'a length without a body': [[['content-length', '60']], undefined],
  'two lengths': [[['content-length', '5'], ['content-length', '60']], 'hello'],
  'a list of lengths': [[['content-length', '5, 60']], 'hello'],
  'transfer-encoding': [[['transfer-encoding', 'chunked']], CHUNKS],
  'an upgrade': [[['connection', 'upgrade'], ['upgrade', 'websocket'], ['content-length', '60']], undefined],
  'another spelling': [[['content_length', '60'], ['transfer_encoding', 'chunked']], 'hello'],
  'a line end in a value': [[['x-a', 'b\r\nContent-Length: 60']], 'hello'],
  'a line end in a name': [[['x-a\r\ncontent-length', '60']], 'hello'],
  'a WebSocket with a length': [[[':protocol', 'websocket'], ['content-length', '60']], 'hello'],
  te: [[['te', 'trailers, chunked']], 'hello'],
};

const UNANSWERED_MS = 40; // an attacker who sends no body gets no answer to wait for
const DEADLINE_MS = 10_000;
const NEXT = 2; // people who ask after each: the edge keeps connections for each of its threads

const folder = mkdtempSync(join(tmpdir(), 'vestibule-desync-'));
const file = (name, text) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

/** The application behind the proxies, and a server of its own: says what it got. */
async function application() {
  const seen = [];
  const server = http.createServer((incoming, answer) => {
    seen.push(incoming.url);
    const say = () => answer.end(JSON.stringify({
      method: incoming.method, url: incoming.url, subjects: incoming.rawHeaders.filter((_, at) => /^x-auth-subject$/i.test(incoming.rawHeaders[at - 1] ?? '')),
    }));
    if (incoming.url.endsWith('/close')) incoming.socket.destroy();
    else if (incoming.url.endsWith('/early')) { say(); incoming.resume(); } else incoming.resume().on('end', say);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { seen, port: server.address().port, stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}

const START = {
  nginx: (port, app) => new Child('nginx', 'nginx', ['-p', folder, '-e', 'stderr', '-c', file('nginx.conf', `
daemon off; pid ${folder}/nginx.pid; worker_processes 1; error_log stderr;
events {}
http {
  access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server {
    listen 127.0.0.1:${port};
    location ~ /early$ { return 200 "early"; }
    location ~ /close$ { return 444; }
    location / { proxy_pass http://127.0.0.1:${app}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}`)]),
  Apache: (port, app) => new Child('apache2', 'apache2', ['-X', '-d', folder, '-f', file('apache.conf', `
Listen 127.0.0.1:${port}
ServerName localhost
PidFile ${folder}/apache.pid
ErrorLog ${folder}/apache.log
Mutex file:${folder} default
User nobody
Group nogroup
${['mpm_event', 'authz_core', 'alias', 'proxy', 'proxy_http'].map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
RedirectMatch 404 /early$
ProxyPassMatch "^/(.*)$" "http://127.0.0.1:${app}/$1"
`)]),
  HAProxy: (port, app) => new Child('haproxy', 'haproxy', ['-db', '-f', file('haproxy.cfg', `
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:${port}
  http-request return status 200 content-type text/plain string early if { path_end /early }
  http-request reject if { path_end /close }
  default_backend application
backend application
  http-reuse always
  server one 127.0.0.1:${app}
`)]),
  Node: () => undefined,
  Python: (port) => new Child('python', 'python3', [fileURLToPath(new URL('desync-server.py', import.meta.url)), String(port)]),
};

/** One request over HTTP/2, frame by frame, until it is answered, refused or cut off. */
function overHttp2(port, method, path, [fields, body]) {
  const pseudo = [[':method', fields.some(([name]) => name === ':protocol') ? 'CONNECT' : method], [':scheme', 'http'], [':path', path], [':authority', 'a']];
  const block = Buffer.concat([...pseudo, ...fields].map(([name, value]) => field(name, value)));
  const frames = [frame(HEADERS, END_HEADERS | (body === undefined ? END_STREAM : 0), 1, block)];
  if (body !== undefined) frames.push(frame(DATA, END_STREAM, 1, Buffer.from(body, 'latin1')));
  return speak(port, frames, { enough: (got) => got.some(({ type, stream }) => stream === 1 && type !== 8) || got.some(({ type }) => type === 7) });
}

const connects = (port) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
});

/** Sends bytes on a connection of their own: the status of the answer, 0 without one. */
function raw(port, bytes, timeoutMs) {
  return new Promise((resolve) => {
    let read = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    const done = () => { clearTimeout(late); socket.destroy(); resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(read)?.[1] ?? 0)); };
    const late = setTimeout(done, timeoutMs);
    socket.setEncoding('latin1').on('data', (text) => { read += text; if (read.includes('\r\n\r\n')) done(); }).on('end', done).on('error', done);
  });
}

describe('the request after one whose end is in doubt', { concurrency: true }, () => {
  let [stack, app, cookie, subject] = [];
  const programs = new Map();
  const ports = new Map();

  before(async () => {
    app = await application();
    for (const [name, start] of Object.entries(START)) {
      const port = name === 'Node' ? app.port : await freePort();
      ports.set(name, port);
      programs.set(name, start(port, app.port));
    }
    for (const [name, port] of ports) await until(DEADLINE_MS, () => connects(port), () => `${name} does not listen: ${programs.get(name)?.output}`);
    const rule = (name, guard) => `[[route]]\npath = "/${guard}-${name}/*"\nguard = "${guard}"\nupstream = "http://127.0.0.1:${ports.get(name)}"\n`;
    const routes = file('routes.toml', Object.keys(START).flatMap((name) => [rule(name, 'api'), rule(name, 'none')]).join(''));
    stack = await startStack({ routes, edgeEnv: { EDGE_UPSTREAM_TIMEOUT: '5' } });
    const person = new Client();
    await person.signIn(stack);
    cookie = person.sessionCookie(stack).join('=');
    subject = (await person.me(stack)).json().sub;
  });

  after(async () => {
    await stack?.stop();
    for (const program of programs.values()) await program?.stop();
    await app?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The next people's requests arrive as they were sent. */
  async function othersAreWhole(name, turn, what) {
    const url = `/api-${name}/${turn}/next`;
    const next = await Promise.all(Array.from({ length: NEXT }, () => request(`${stack.edgeUrl}${url}`, { headers: { cookie } })));
    for (const answer of next) {
      assert.equal(answer.status, 200, `after ${what}: ${answer.text}`);
      assert.deepEqual(answer.json(), { method: 'GET', url, subjects: [subject] }, `after ${what}`);
    }
  }

  async function nothingWasSmuggled() {
    const python = await request(`http://127.0.0.1:${ports.get('Python')}/seen`);
    const smuggled = [...app.seen, ...python.json()].filter((url) => url.includes('smuggled'));
    assert.deepEqual(smuggled, [], 'no body was taken for a request');
  }

  for (const name of Object.keys(START)) {
    test(`behind it ${name}`, async () => {
      const edge = Number(new URL(stack.edgeUrl).port);
      let turn = 0;
      for (const method of METHODS) for (const upgrade of [false, true]) for (const [framing, [head, body]] of Object.entries(FRAMINGS)) for (const when of ANSWERS) {
        turn += 1;
        const what = `${method}, ${upgrade ? 'upgrade, ' : ''}${framing}, answered ${when}`;
        // A preflight needs no session: it goes to the guarded route.
        const path = `/${method === 'OPTIONS' ? 'api' : 'none'}-${name}/${turn}/${when}`;
        const bytes = `${method} ${path} HTTP/1.1\r\nHost: a\r\n${PREFLIGHT}${upgrade ? UPGRADE : ''}${head}\r\n${body}`;
        const answered = upgrade || framing !== 'a length without its body';
        const status = await raw(edge, bytes, answered ? DEADLINE_MS : UNANSWERED_MS);
        await othersAreWhole(name, turn, what);
        if (upgrade && (method !== 'GET' || framing !== 'neither')) assert.equal(status, 400, what);
        if (method === 'OPTIONS' && !upgrade && framing !== 'neither') assert.ok([0, 401].includes(status), `${what}: ${status}`);
      }
      assert.equal(turn, METHODS.length * 2 * Object.keys(FRAMINGS).length * ANSWERS.length);
      await nothingWasSmuggled();
    });

    test(`behind it ${name}, over HTTP/2`, async () => {
      const edge = Number(new URL(stack.edgeUrl).port);
      for (const method of ['GET', 'POST']) for (const [framing, sent] of Object.entries(OVER_HTTP2)) for (const when of ANSWERS) {
        await overHttp2(edge, method, `/none-${name}/http2/${when}`, sent);
        await othersAreWhole(name, 'http2', `${method} over HTTP/2, ${framing}, answered ${when}`);
      }
      await nothingWasSmuggled();
    });
  }
});
