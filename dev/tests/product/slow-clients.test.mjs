// Hundreds of deliberately slow clients at every port. Other clients get responses, memory does not grow, and the
// services close each slow connection.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { after, before, test } from 'node:test';

import { freePort, pause, probe, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { request } from './client.mjs';
import { field, invoke } from './grpc.mjs';

const EACH = 40; // clients of each kind at each port
const GROWTH_MIB = 64;
const DEADLINE_MS = 90_000; // far above every wait limit of the services
const TRICKLE_MS = 400;

const FORM = 'POST /api/auth/backchannel-logout HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n';
const CALL = 'POST /session.v1.BrowserSessionService/GetCurrentSession HTTP/1.1\r\nHost: a\r\nX-Csrf: 1\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 1000\r\n\r\n';

/** The first bytes of a client, and whether it continues byte by byte. */
const HEADS = {
  'says nothing': ['', false],
  'says its head byte by byte': ['G', true],
  'never ends its head': ['GET / HTTP/1.1\r\nHost: a\r\nX-A: ', true],
  'begins HTTP/2 and stops': ['PRI * HTTP/2.0\r\n', false],
};
const BODIES = { 'says its form byte by byte': [FORM, true], 'says its call byte by byte': [CALL, true], 'never says its call': [CALL, false] };
const HANDSHAKES = { 'never begins its handshake': ['', false], 'never ends its handshake': ['\x16\x03\x01\x02\x00\x01', true] };

let [plain, secured, extAuthz] = [];
before(async () => {
  extAuthz = await freePort();
  plain = await startStack({ edgeEnv: { EDGE_EXT_AUTHZ_LISTEN: `127.0.0.1:${extAuthz}` } });
  secured = await startStack({ tls: true });
});
after(async () => { await plain?.stop(); await secured?.stop(); });

const portOf = (url) => Number(new URL(url).port);
const resident = (stack, name) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${stack.pid(name)}/status`, 'utf8'))[1]) / 1024;

/** A slow client; the server has closed the connection once `closed` is set. */
function slow(port, [beginning, goesOn]) {
  const client = { closed: false };
  const socket = net.connect(port, '127.0.0.1', () => {
    if (beginning) socket.write(Buffer.from(beginning, 'latin1'));
    if (goesOn) client.trickle = setInterval(() => socket.write('a'), TRICKLE_MS);
  });
  const ended = () => { client.closed = true; clearInterval(client.trickle); socket.destroy(); };
  // A response that reports a timeout also counts as an end.
  socket.on('data', ended).on('end', ended).on('error', ended).on('close', ended);
  return client;
}

test('every port drops slow clients, and no other client notices', async () => {
  const ports = {
    'the edge': [portOf(plain.edgeUrl), { ...HEADS, ...BODIES }],
    'the edge for Envoy': [extAuthz, HEADS],
    'the edge\'s admin port': [portOf(plain.adminUrls.edge), HEADS],
    'the session service': [portOf(plain.sessionUrls[0]), HEADS],
    'its admin port': [portOf(plain.adminUrls.session), HEADS],
    'the edge over TLS': [portOf(secured.edgeUrl), HANDSHAKES],
  };
  const processes = [[plain, 'edge'], [plain, 'session'], [secured, 'edge']];
  const before = processes.map(([stack, name]) => resident(stack, name));
  const clients = Object.entries(ports).flatMap(([where, [port, kinds]]) => Object.entries(kinds).flatMap(([kind, says]) => (
    Array.from({ length: EACH }, () => ({ what: `at ${where}, one that ${kind}`, client: slow(port, says) })))));
  const waiting = () => clients.filter(({ client }) => !client.closed).map(({ what }) => what);
  await pause(1_000); // all of them have begun
  assert.ok(waiting().length > clients.length / 2, 'they are slow');
  processes.forEach(([stack, name], at) => {
    const more = resident(stack, name) - before[at];
    assert.ok(more < GROWTH_MIB, `${name}: ${Math.round(more)} MiB more`);
  });
  await until(DEADLINE_MS, async () => {
    assert.equal((await request(`${plain.edgeUrl}/api/auth/status`)).status, 200);
    for (const name of ['edge', 'session']) assert.equal((await probe(`${plain.adminUrls[name]}/readyz`)).status, 200, name);
    assert.equal((await probe(`${secured.adminUrls.edge}/readyz`)).status, 200);
    assert.equal((await invoke(plain.sessionUrls[0], 'GetSession', field(2, '0'.repeat(32)))).status, 5);
    return waiting().length === 0;
  }, () => [...new Set(waiting())].join('\n'));
});
