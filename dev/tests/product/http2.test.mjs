// HTTP/2 as nobody's browser speaks it: frames by hand, against the edge as it runs. Each abuse ends on its own connection.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';

import { startStack } from '../../stack.mjs';
import { request } from './client.mjs';

const [DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, CONTINUATION] = [0, 1, 3, 4, 7, 9];
const [END_STREAM, END_HEADERS] = [1, 4];
const ENHANCE_YOUR_CALM = 11;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const STATUS_431 = Buffer.from([0x48, 0x83, 0x69, 0x90, 0xff]); // :status, and 431 in the Huffman code of HPACK
const PATIENCE_MS = 120_000;

function frame(type, flags, stream, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A string of HPACK without Huffman coding (RFC 7541, section 5.2). */
function text(value) {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  for (let left = bytes.length - 127; ; left = Math.floor(left / 128)) {
    if (left < 128) {
      length.push(left);
      break;
    }
    length.push((left % 128) + 128);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

const field = (name, value) => Buffer.concat([Buffer.from([0]), text(name), text(value)]);

/** GET of a path, with further fields; indices are those of the static table. */
const head = (path, ...fields) => Buffer.concat([Buffer.from([0x82, 0x86, 0x04]), text(path), Buffer.from([0x01]), text('a'), ...fields]);

describe('HTTP/2', () => {
  let [stack, port] = [];
  before(async () => {
    stack = await startStack();
    port = Number(new URL(stack.edgeUrl).port);
  });
  after(() => stack?.stop());

  /** Sends these frames and collects the edge's until `enough(frames)`, or until the edge hangs up. */
  function speak(frames, enough = () => false) {
    return new Promise((resolve, reject) => {
      const [got, socket] = [[], net.connect(port, '127.0.0.1')];
      let read = Buffer.alloc(0);
      const late = setTimeout(() => { socket.destroy(); reject(new Error(`neither an answer nor an end, but ${JSON.stringify(got)}`)); }, PATIENCE_MS);
      const end = (closed) => { clearTimeout(late); socket.destroy(); resolve({ got, closed }); };
      socket.on('data', (chunk) => {
        read = Buffer.concat([read, chunk]);
        while (read.length >= 9 && read.length >= 9 + read.readUIntBE(0, 3)) {
          const length = read.readUIntBE(0, 3);
          got.push({ type: read[3], stream: read.readUInt32BE(5), payload: read.subarray(9, 9 + length) });
          read = read.subarray(9 + length);
          if (enough(got)) return end(false);
        }
      });
      socket.on('error', () => end(true)).on('close', () => end(true));
      socket.on('connect', async () => {
        socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
        for (const bytes of frames) {
          if (socket.destroyed) return;
          if (!socket.write(bytes)) await new Promise((go) => { socket.once('drain', go).once('close', go); });
        }
      });
    });
  }

  const answered = (frames) => frames.some(({ type }) => type === HEADERS);
  const goaway = (frames) => frames.find(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4);
  const serves = async () => assert.equal((await request(`${stack.edgeUrl}/api/auth/status`)).status, 200, 'others are served');

  test('the edge says how many streams and how long a head it takes', async () => {
    const { got } = await speak([], (frames) => frames.some(({ type, payload }) => type === SETTINGS && payload.length > 0));
    const settings = new Map();
    const { payload } = got.find(({ type }) => type === SETTINGS);
    for (let at = 0; at < payload.length; at += 6) settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    assert.equal(settings.get(3), 1024, 'SETTINGS_MAX_CONCURRENT_STREAMS');
    assert.equal(settings.get(6), 65_536, 'SETTINGS_MAX_HEADER_LIST_SIZE');
  });

  test('streams begun and reset without end cost their sender the connection', async () => {
    const burst = (from) => Buffer.concat(Array.from({ length: 1000 }, (_, at) => {
      const stream = 2 * (from + at) + 1;
      return Buffer.concat([frame(HEADERS, END_STREAM | END_HEADERS, stream, head('/api/auth/status')), frame(RST_STREAM, 0, stream, Buffer.from([0, 0, 0, 8]))]);
    }));
    const flood = { * [Symbol.iterator]() { for (let from = 0; from < 1_000_000; from += 1000) yield burst(from); } };
    assert.equal((await speak(flood)).closed, true);
    await serves();
  });

  test('a head that never ends costs its sender the connection', async () => {
    const more = frame(CONTINUATION, 0, 1, field('x-a', 'b'.repeat(16_000)));
    const { got, closed } = await speak([frame(HEADERS, END_STREAM, 1, head('/')), ...Array.from({ length: 2000 }, () => more)]);
    assert.ok(closed && [undefined, ENHANCE_YOUR_CALM].includes(goaway(got)), `${goaway(got)}`);
    assert.equal(answered(got), false);
    await serves();
  });

  test('a head beyond its limit is 431', async () => {
    const [first, ...rest] = head('/api/auth/status', field('x-a', 'b'.repeat(70_000))).toString('latin1').match(/[^]{1,16000}/g);
    const parts = rest.map((part, at) => frame(CONTINUATION, at === rest.length - 1 ? END_HEADERS : 0, 1, Buffer.from(part, 'latin1')));
    const { got } = await speak([frame(HEADERS, END_STREAM, 1, Buffer.from(first, 'latin1')), ...parts], answered);
    assert.ok(got.find(({ type }) => type === HEADERS).payload.includes(STATUS_431));
    await serves();
  });

  test('what frames messages elsewhere has no place in a head, nor has a second line', async () => {
    for (const [name, value] of [['transfer-encoding', 'chunked'], ['connection', 'x-auth-subject'], ['upgrade', 'h2c'], ['X-Upper', 'a'], ['x-a', 'b\r\nx-auth-subject: admin'], ['x-a\r\nb', 'c'], [':path', '/x']]) {
      const enough = (frames) => answered(frames) || frames.some(({ type }) => type === RST_STREAM || type === GOAWAY);
      const { got } = await speak([frame(HEADERS, END_STREAM | END_HEADERS, 1, head('/api/auth/status', field(name, value)))], enough);
      assert.equal(answered(got), false, `${name}: ${value}`);
    }
    await serves();
  });

  test('a body longer than it says is refused', async () => {
    const post = Buffer.concat([Buffer.from([0x83, 0x86, 0x04]), text('/api/auth/backchannel-logout'), Buffer.from([0x01]), text('a'), field('content-length', '3'), field('content-type', 'application/x-www-form-urlencoded')]);
    const enough = (frames) => answered(frames) || frames.some(({ type }) => type === RST_STREAM || type === GOAWAY);
    const { got } = await speak([frame(HEADERS, END_HEADERS, 1, post), frame(DATA, END_STREAM, 1, Buffer.from('logout_token=a'))], enough);
    assert.equal(answered(got), false);
    await serves();
  });
});
