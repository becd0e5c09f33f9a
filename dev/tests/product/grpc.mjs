// The gRPC subset for tests of raw responses: calls without a client library, and readers of a few fields.
import { once } from 'node:events';
import http2 from 'node:http2';

const FRAME_HEAD = 5; // a flag and a length of four bytes before each message

function varintOf(value) {
  const bytes = [];
  for (let rest = value; ; rest >>>= 7) {
    bytes.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest < 128) return bytes;
  }
}

/** One length-delimited protobuf field. */
export function field(number, value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...varintOf(bytes.length)]), bytes]);
}

/** A google.protobuf.Timestamp. */
export const timestamp = (seconds) => Buffer.from([1 << 3, ...varintOf(seconds)]);

/** Top-level fields of a message, in their order: [number, value], a Buffer or a number. */
export function entries(message) {
  const found = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at];
      at += 1;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    if ((tag & 7) === 0) found.push([tag >>> 3, varint()]);
    else if ((tag & 7) === 2) {
      const length = varint();
      found.push([tag >>> 3, message.subarray(at, at + length)]);
      at += length;
    } else throw new Error(`wire type ${tag & 7} is not expected here`);
  }
  return found;
}

/** The same: number → its last value. */
export const fields = (message) => Object.fromEntries(entries(message));

function frame(message) {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/**
 * Calls `method` of the session service. `ended` resolves with `{status, raw}`: the status code, and all received
 * headers and bytes as one text. `messages` grows as they arrive; `close` closes the stream.
 */
export function open(url, method, message = Buffer.alloc(0), messages = []) {
  const session = http2.connect(url);
  const call = { messages };
  const texts = [];
  let status = -1;
  const heard = (headers) => {
    texts.push(JSON.stringify(headers));
    if (headers['grpc-status'] !== undefined) status = Number(headers['grpc-status']);
    const details = headers['grpc-status-details-bin'];
    if (details) texts.push(Buffer.from(details, 'base64').toString('latin1'));
  };
  const stream = session.request({
    ':method': 'POST', ':path': `/session.v1.SessionService/${method}`, 'content-type': 'application/grpc', te: 'trailers',
  });
  let rest = Buffer.alloc(0);
  stream.on('response', heard).on('trailers', heard).on('data', (chunk) => {
    texts.push(chunk.toString('latin1'));
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= FRAME_HEAD && rest.length >= FRAME_HEAD + rest.readUInt32BE(1)) {
      const end = FRAME_HEAD + rest.readUInt32BE(1);
      call.messages.push(rest.subarray(FRAME_HEAD, end));
      rest = rest.subarray(end);
    }
  });
  const failed = (error) => texts.push(error.message);
  session.on('error', failed);
  stream.on('error', failed);
  call.ended = once(stream, 'close').then(() => {
    session.close();
    return { status, raw: texts.join('\n') };
  });
  call.close = () => stream.close();
  stream.end(frame(message));
  return call;
}

/** Makes a call and waits for its end. */
export async function invoke(url, method, message) {
  const call = open(url, method, message);
  const { status, raw } = await call.ended;
  return { status, raw, messages: call.messages };
}

/** A trace collector that keeps every received byte; over TLS if it has options for tls.createServer. */
export async function startCollector(tls) {
  const received = [];
  const server = tls ? http2.createSecureServer(tls) : http2.createServer();
  server.on('stream', (stream, headers) => {
    received.push(Buffer.from(JSON.stringify(headers)));
    stream.on('data', (chunk) => received.push(chunk)).on('error', () => {}).on('end', () => {
      if (stream.destroyed) return; // the collector was stopped in the meantime
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(frame(Buffer.alloc(0)));
    });
  });
  const open = new Set();
  server.on('session', (session) => {
    open.add(session);
    session.on('close', () => open.delete(session)).on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${server.address().port}`,
    bytes: () => Buffer.concat(received),
    stop: () => {
      server.close();
      open.forEach((session) => session.destroy());
    },
  };
}
