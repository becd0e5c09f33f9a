// Hundreds or thousands of connections from many addresses that all do the same: each of them costs as much memory as a client can make it cost.
// Runs as a process of its own (`node crowds.mjs KIND SECONDS BROWSERS ADMIN ENVOY SESSION`, the last four being ports).
import net from 'node:net';

import { DATA, END_HEADERS, END_STREAM, HEADERS, field, frame, head, post, settings, text } from './frames.mjs';

const ADDRESSES = 8; // each has a quarter of the connections at most
const OPENED = 100; // every 20 ms
const OPEN_MS = 20;
const AGAIN_MS = 500; // a connection that was ended is opened again
const INITIAL_WINDOW_SIZE = 4;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const GRPC = [field('content-type', 'application/grpc'), field('te', 'trailers')];
const CHECK = '/envoy.service.auth.v3.Authorization/Check';
const COOKIE = Buffer.concat([Buffer.from([0x40]), text('cookie'), text(`a=${'b'.repeat(3_900)}`)]); // it stays in the table of fields
const AGAIN = Buffer.from([0xbe]);

const odd = (at) => 2 * at + 1;
const many = (count, make) => Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
const http2 = (window, ...frames) => Buffer.concat([PREFACE, settings({ [INITIAL_WINDOW_SIZE]: window }), ...frames]);
const gets = (count, path, ...fields) => many(count, (at) => frame(HEADERS, END_HEADERS | END_STREAM, odd(at), head(path, ...fields)));
const LONG_HEAD = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(60_000)}`);

/** What each connection says, at which port, how many there are, and whether it takes what it is answered. */
const KINDS = {
  silent: { count: 6_000, says: Buffer.alloc(0) },
  'silent over HTTP/2': { count: 6_000, says: http2(65_535) },
  'full tables of fields': { count: 6_000, says: http2(65_535, frame(HEADERS, END_HEADERS | END_STREAM, 1, head('/hang/a', COOKIE))) },
  'heads that never end': { count: 6_000, says: LONG_HEAD },
  'heads that never end over HTTP/2': { count: 6_000, says: http2(65_535, frame(HEADERS, 0, 1, Buffer.concat([head('/'), field('x-a', 'b'.repeat(15_000))]))) },
  'refusals that nobody reads': { count: 3_000, says: http2(0, gets(100, '/api/auth/me')) },
  'cookies named again and again': { count: 3_000, says: http2(0, frame(HEADERS, END_HEADERS | END_STREAM, 1, head('/api/auth/me', COOKIE)), many(99, (at) => frame(HEADERS, END_HEADERS | END_STREAM, odd(at + 1), head('/api/auth/me', AGAIN, AGAIN, AGAIN)))) },
  'downloads that stop': { count: 3_000, says: Buffer.from('GET /slow/large HTTP/1.1\r\nHost: a\r\n\r\n'), takes: false },
  'downloads that stop over HTTP/2': { count: 3_000, says: http2(1, gets(100, '/slow/large')) },
  'uploads that nobody takes': { count: 3_000, says: Buffer.concat([Buffer.from('POST /hang/a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'), Buffer.alloc(500_000, 97)]) },
  'uploads that nobody takes over HTTP/2': { count: 1_000, says: http2(65_535, many(100, (at) => frame(HEADERS, END_HEADERS, odd(at), post('/hang/a'))), many(4, (at) => frame(DATA, 0, odd(at), Buffer.alloc(16_000)))) },
  'silent at the port for Envoy': { count: 6_000, port: 'envoy', says: http2(65_535) },
  'questions that never end at the port for Envoy': { count: 500, port: 'envoy', says: http2(65_535, many(1_000, (at) => frame(HEADERS, END_HEADERS, odd(at), post(CHECK, ...GRPC, ...(at === 0 ? [COOKIE] : Array(10).fill(AGAIN)))))) },
  'silent at the admin port': { count: 6_000, port: 'admin', says: Buffer.alloc(0) },
  'heads that never end at the admin port': { count: 6_000, port: 'admin', says: LONG_HEAD },
  'metrics that nobody reads': { count: 500, port: 'admin', says: http2(0, gets(1_000, '/metrics')) },
  'heads that never end at the session service': { count: 6_000, port: 'session', says: LONG_HEAD },
};

/** Which program each is meant for. */
export const CROWDS = Object.fromEntries(Object.entries(KINDS).map(([kind, { port }]) => [kind, port === 'session' ? 'session' : 'edge']));

function crowd({ count, port = 'browsers', says, takes = true }, ports) {
  const open = (at) => {
    const socket = net.connect({ port: ports[port], host: '127.0.0.1', localAddress: `127.1.0.${1 + (at % ADDRESSES)}` });
    socket.on('connect', () => socket.write(says)).on('error', () => {}).on('close', () => setTimeout(() => open(at), AGAIN_MS));
    if (takes) socket.resume(); else socket.pause();
  };
  let opened = 0;
  const opening = setInterval(() => {
    for (let at = 0; at < OPENED && opened < count; at += 1, opened += 1) open(opened);
    if (opened === count) clearInterval(opening);
  }, OPEN_MS);
}

if (import.meta.filename === process.argv[1]) {
  const [kind, seconds, browsers, admin, envoy, session] = process.argv.slice(2);
  crowd(KINDS[kind], { browsers, admin, envoy, session });
  setTimeout(() => process.exit(0), Number(seconds) * 1_000);
}
