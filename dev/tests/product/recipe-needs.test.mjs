// Features that proxy defaults forbid must still work for applications, through every recipe of docs/integrations.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';
import { START } from './proxies.mjs';

const SILENCE_MS = 80_000; // above every default: Envoy 15 s, nginx and Traefik 60 s, HAProxy often 75 s
const UPLOAD_BYTES = 20 * 1024 * 1024; // nginx takes 1 MiB by default
const PART_MS = 16_000; // between two parts of an upload over a slow line
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // RFC 6455, section 1.3

/** An application with long silences. */
async function application() {
  const server = http.createServer((asked, answer) => {
    if (asked.url === '/slow') return setTimeout(() => answer.end('late'), SILENCE_MS);
    if (asked.url === '/events') {
      answer.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
      return setTimeout(() => answer.end('data: last\n\n'), SILENCE_MS);
    }
    let bytes = 0;
    asked.on('data', (part) => { bytes += part.length; }).on('error', () => {});
    return asked.on('end', () => answer.end(`${bytes}`));
  });
  // Echoes what it receives, at once and again after the silence.
  server.on('upgrade', (asked, socket) => {
    const accept = createHash('sha1').update(asked.headers['sec-websocket-key'] + WEBSOCKET_GUID).digest('base64');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
    socket.on('data', (bytes) => socket.write(bytes)).on('error', () => {});
    setTimeout(() => socket.end('last'), SILENCE_MS);
  });
  server.requestTimeout = 0;
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { port: server.address().port, stop: () => { server.closeAllConnections(); server.close(); } };
}

/** A response in parts: its beginning, and all of it. */
function parts(url, { headers, method = 'GET', send = (sent) => sent.end() }) {
  return new Promise((resolve, reject) => {
    const sent = http.request(url, { method, headers, agent: false });
    const read = (status, stream) => {
      let text = '';
      stream.setEncoding('utf8').on('data', (part) => { text += part; }).on('error', reject).on('close', () => resolve({ status, text }));
    };
    sent.on('response', (answer) => read(answer.statusCode, answer));
    sent.on('upgrade', (answer, socket) => {
      read(answer.statusCode, socket);
      socket.write('first');
    });
    sent.on('error', reject);
    send(sent);
  });
}

/** Sends a body of five parts with a pause before each part. */
function trickle(sent, left = 5) {
  if (left === 0) return sent.end();
  sent.write('part');
  return setTimeout(() => trickle(sent, left - 1), PART_MS);
}

const WEBSOCKET = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };

/** What an application does, and the expected result at its client: `(url, headers)`. */
const NEEDS = {
  'a large upload': async (url, headers) => {
    const send = (sent) => sent.end(Buffer.alloc(UPLOAD_BYTES));
    assert.deepEqual(await parts(`${url}/files`, { method: 'POST', headers: { ...headers, 'content-length': UPLOAD_BYTES }, send }), { status: 200, text: `${UPLOAD_BYTES}` });
  },
  'an upload over a slow line': async (url, headers) => {
    assert.deepEqual(await parts(`${url}/files`, { method: 'POST', headers, send: trickle }), { status: 200, text: '20' });
  },
  'a slow answer': async (url, headers) => {
    assert.deepEqual(await parts(`${url}/slow`, { headers }), { status: 200, text: 'late' });
  },
  'a stream of events that is silent for long': async (url, headers) => {
    assert.deepEqual(await parts(`${url}/events`, { headers: { ...headers, accept: 'text/event-stream' } }), { status: 200, text: 'data: first\n\ndata: last\n\n' });
  },
  'the first event of a stream, while the stream is silent': (url, headers) => new Promise((resolve, reject) => {
    const begun = performance.now();
    const sent = http.get(`${url}/events`, { headers: { ...headers, accept: 'text/event-stream' }, agent: false }, (answer) => {
      answer.once('data', () => {
        sent.destroy();
        if (performance.now() - begun < SILENCE_MS) resolve();
        else reject(new Error('the proxy kept the event until the stream ended'));
      }).on('error', () => {});
    }).on('error', reject);
  }),
  'a WebSocket that is silent for long': async (url, headers) => {
    assert.deepEqual(await parts(`${url}/socket`, { headers: { ...headers, ...WEBSOCKET } }), { status: 101, text: 'firstlast' });
  },
};

describe('an application behind the check', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-needs-'));
  const programs = new Map();
  let [stack, app, cookie] = [];

  before(async () => {
    app = await application();
    const routes = join(folder, 'routes.toml');
    writeFileSync(routes, '[[check]]\nguard = "api"\n');
    const extAuthz = await freePort();
    stack = await startStack({ routes, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1', EDGE_EXT_AUTHZ_LISTEN: `127.0.0.1:${extAuthz}` } });
    const client = new Client();
    await client.signIn(stack);
    const [[name, value]] = [client.sessionCookie(stack)];
    cookie = `${name}=${value}`;
    await Promise.all(Object.entries(START).map(async ([proxy, start]) => {
      const [front, own] = [await freePort(), join(folder, proxy)];
      mkdirSync(own);
      const program = await start(own, { front, edge: Number(new URL(stack.edgeUrls[0]).port), extAuthz, application: app.port }).listening(front);
      const url = `http://127.0.0.1:${front}`;
      programs.set(proxy, { program, url });
      await until(20_000, async () => (await request(`${url}/`, { headers: { cookie } })).status === 200, () => `${proxy} knows no way: ${program.log}`);
    }));
  });

  after(async () => {
    await Promise.all([...programs.values()].map(({ program }) => program.stop()));
    await app?.stop();
    await stack?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  describe('by each recipe', { concurrency: true }, () => {
    for (const proxy of Object.keys(START)) {
      for (const [need, check] of Object.entries(NEEDS)) test(`${proxy} passes ${need}`, () => check(programs.get(proxy).url, { cookie }));
    }
  });
});
