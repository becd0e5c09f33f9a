// HTTP/2 as nobody's browser speaks it: frames by hand, against the edge as it runs. Each abuse ends on its own connection.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { startStack } from '../../stack.mjs';
import { request } from './client.mjs';
import { CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, SETTINGS, answered, field, frame, goaway, head, post, speak as speakTo } from './frames.mjs';

const ENHANCE_YOUR_CALM = 11;
const STATUS_431 = Buffer.from([0x48, 0x83, 0x69, 0x90, 0xff]); // :status, and 431 in the Huffman code of HPACK

describe('HTTP/2', () => {
  let [stack, port] = [];
  before(async () => {
    stack = await startStack();
    port = Number(new URL(stack.edgeUrl).port);
  });
  after(() => stack?.stop());

  const speak = (frames, enough) => speakTo(port, frames, { enough });
  const serves = async () => assert.equal((await request(`${stack.edgeUrl}/api/auth/status`)).status, 200, 'others are served');

  test('the edge says how many streams and how long a head it takes', async () => {
    const { got } = await speak([], (frames) => frames.some(({ type, payload }) => type === SETTINGS && payload.length > 0));
    const settings = new Map();
    const { payload } = got.find(({ type }) => type === SETTINGS);
    for (let at = 0; at < payload.length; at += 6) settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    assert.equal(settings.get(3), 100, 'SETTINGS_MAX_CONCURRENT_STREAMS');
    assert.equal(settings.get(6), 16_384, 'SETTINGS_MAX_HEADER_LIST_SIZE');
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
    const [first, ...rest] = head('/api/auth/status', field('x-a', 'b'.repeat(20_000))).toString('latin1').match(/[^]{1,16000}/g);
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
    const headerBlock = post('/api/auth/backchannel-logout', field('content-length', '3'), field('content-type', 'application/x-www-form-urlencoded'));
    const enough = (frames) => answered(frames) || frames.some(({ type }) => type === RST_STREAM || type === GOAWAY);
    const { got } = await speak([frame(HEADERS, END_HEADERS, 1, headerBlock), frame(DATA, END_STREAM, 1, Buffer.from('logout_token=a'))], enough);
    assert.equal(answered(got), false);
    await serves();
  });
});
