// Clients that attack the edge, all at once, each kind from a separate address. Runs as a separate process
// (`node attackers.mjs PORT SECONDS`), so that its work does not delay the measurements.
import net from 'node:net';

import { END_HEADERS, END_STREAM, HEADERS, SETTINGS, PING, field, frame, head, post, settings, text } from './frames.mjs';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const INITIAL_WINDOW_SIZE = 4;
const ASK_AGAIN_MS = 4_000; // this tests the effect of one packet, not the cost of reading many
const AGAIN_MS = 1_000; // a closed connection is opened again after this

/** The size of each attack. Each kind has a separate address, so that a limit on one does not hold back another. */
const IDLE = 16_384;
const IDLE_BURST = 50; // opened every 100 ms in place of closed ones: the listener's queue is not under test
const CALLS = { connections: 5, streams: 1_024 };
const TRICKLES = 300;
const TRICKLE_MS = 2_000;
const BOMBS = { connections: 4, streams: 1_000, copies: 15 };
const STILL = { connections: 4, streams: 1_020 };

const STATUS_CONNECTIONS = 64;

const odd = (at) => 2 * at + 1;

/** A connection that reopens whenever it ends; `say` writes to it. */
function kept(port, localAddress, say) {
  const open = () => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress });
    let timer;
    socket.on('connect', () => { timer = say(socket); }).on('error', () => {}).resume();
    socket.on('close', () => { clearInterval(timer); setTimeout(open, AGAIN_MS); });
  };
  open();
}

/** The same over HTTP/2: `streams` requests, and further ones while the connection lasts. */
function http2(port, localAddress, { streams, request, first = settings({}), acknowledges = true }) {
  kept(port, localAddress, (socket) => {
    socket.write(Buffer.concat([PREFACE, first]));
    let asked = 0;
    const ask = () => {
      const frames = Array.from({ length: streams }, (_, at) => request(odd(asked + at), asked + at));
      asked += streams;
      socket.write(Buffer.concat(frames));
    };
    ask();
    let read = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      read = Buffer.concat([read, chunk]);
      while (read.length >= 9 && read.length >= 9 + read.readUIntBE(0, 3)) {
        const size = read.readUIntBE(0, 3);
        if (acknowledges && (read[3] === SETTINGS || read[3] === PING) && !(read[4] & 1)) socket.write(frame(read[3], 1, 0, read[3] === PING ? read.subarray(9, 17) : Buffer.alloc(0)));
        read = read.subarray(9 + size);
      }
    });
    return setInterval(ask, ASK_AGAIN_MS);
  });
}

const GRPC_WEB = [field('content-type', 'application/grpc-web+proto'), field('x-csrf', '1'), field('sec-fetch-site', 'same-origin')];

export const ATTACKS = {
  /** gRPC calls whose message never arrives. */
  calls(port, address) {
    const asked = post('/session.v1.BrowserSessionService/GetCurrentSession', ...GRPC_WEB);
    for (let at = 0; at < CALLS.connections; at += 1) {
      http2(port, address, { streams: CALLS.streams, request: (stream) => frame(HEADERS, END_HEADERS, stream, asked) });
    }
  },
  /** Request bodies that reach a server behind the edge byte by byte. */
  trickles(port, address) {
    for (let at = 0; at < TRICKLES; at += 1) {
      kept(port, address, (socket) => {
        socket.write('OPTIONS /slow/a HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nAccess-Control-Request-Method: PUT\r\nTransfer-Encoding: chunked\r\n\r\n');
        return setInterval(() => socket.write('1\r\na\r\n'), TRICKLE_MS);
      });
      kept(port, address, (socket) => {
        socket.write('POST /slow/a HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n');
        return setInterval(() => socket.write('a'), TRICKLE_MS);
      });
    }
  },
  /** Small heads that decompress to large ones: repeated references to one cookie in the HPACK table. */
  bombs(port, address) {
    const cookie = Buffer.concat([Buffer.from([0x40]), text('cookie'), text(`a=${'b'.repeat(3_900)}`)]);
    const again = Buffer.alloc(BOMBS.copies, 0xbe);
    for (let at = 0; at < BOMBS.connections; at += 1) {
      http2(port, address, {
        streams: BOMBS.streams,
        request: (stream, number) => frame(HEADERS, END_HEADERS | END_STREAM, stream, head('/hang/a', number === 0 ? cookie : again)),
      });
    }
  },
  /** Requests for files by a client that reads nothing, or one byte, of the response. */
  still(port, address) {
    for (let at = 0; at < STILL.connections; at += 1) {
      http2(port, address, {
        streams: STILL.streams,
        first: settings({ [INITIAL_WINDOW_SIZE]: at % 2 }),
        request: (stream) => frame(HEADERS, END_HEADERS | END_STREAM, stream, head('/small.txt')),
      });
    }
  },
  /** Requests without a session, one after another: they show the cost of a flood in log records. */
  status(port, address) {
    const request = 'GET /api/auth/status HTTP/1.1\r\nHost: a\r\n\r\n';
    for (let at = 0; at < STATUS_CONNECTIONS; at += 1) {
      kept(port, address, (socket) => {
        socket.on('data', () => socket.write(request)).write(request);
      });
    }
  },
  /** Connections that send nothing, or speak HTTP/2 without a request. */
  idle(port, address) {
    let open = 0;
    setInterval(() => {
      for (let at = 0; at < IDLE_BURST && open < IDLE; at += 1) {
        const socket = net.connect({ port, host: '127.0.0.1', localAddress: address });
        open += 1;
        if (at % 2 === 0) socket.write(Buffer.concat([PREFACE, settings({})]));
        socket.on('error', () => {}).on('close', () => { open -= 1; }).resume();
      }
    }, 100);
  },
};

if (import.meta.filename === process.argv[1]) {
  const [port, seconds, ...only] = process.argv.slice(2);
  Object.entries(ATTACKS).forEach(([name, attack], at) => {
    if (only.length === 0 || only.includes(name)) attack(Number(port), `127.0.0.${at + 2}`);
  });
  setTimeout(() => process.exit(0), Number(seconds) * 1_000);
}
