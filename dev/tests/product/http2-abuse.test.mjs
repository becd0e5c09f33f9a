// HTTP/2 attacks on the browsers' port and on the session service's port. Each attack loses at most its connection,
// other clients get responses, and memory does not grow with the received bytes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { shippedLimit } from '../../lib/cgroup.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { request } from './client.mjs';
import {
  CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
  answered, field, frame, goaway, head, post, settings, speak, text,
} from './frames.mjs';
import { field as member, invoke } from './grpc.mjs';

const [HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE] = [1, 4];
const FLOW_CONTROL_ERROR = 3;
const STATUS_431 = Buffer.from([0x48, 0x83, 0x69, 0x90, 0xff]); // :status, and 431 in the Huffman code of HPACK
const GROWTH_MIB = 64; // buffers of a few connections, and the allocator's slack in a debug program
const STREAMS = 100; // the most that the edge accepts
const GRPC = [field('content-type', 'application/grpc'), field('te', 'trailers')];

let stack;
const deployment = (name) => join(ROOT, `k8s/base/${name}/deployment.yaml`);
before(async () => {
  stack = await startStack({
    limits: { edge: shippedLimit(deployment('edge')), session: shippedLimit(deployment('session-svc')) },
  });
});
after(() => stack?.stop());

const PARTIES = {
  edge: {
    port: () => Number(new URL(stack.edgeUrl).port),
    ask: (...fields) => head('/api/auth/status', ...fields),
    send: () => post('/api/auth/backchannel-logout', field('content-type', 'application/x-www-form-urlencoded')),
    serves: async () => assert.equal((await request(`${stack.edgeUrl}/api/auth/status`)).status, 200, 'others are served'),
  },
  session: {
    port: () => Number(new URL(stack.sessionUrls[0]).port),
    ask: (...fields) => post('/grpc.health.v1.Health/Check', ...GRPC, ...fields),
    send: () => post('/session.v1.SessionService/GetSession', ...GRPC),
    serves: async () => assert.equal((await invoke(stack.sessionUrls[0], 'GetSession', member(2, '0'.repeat(32)))).status, 5, 'others are served'),
  },
};

const odd = (at) => 2 * at + 1;
const many = (count, make) => Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
function* repeated(times, bytes) { for (let time = 0; time < times; time += 1) yield bytes; }

for (const [name, party] of Object.entries(PARTIES)) {
  describe(`HTTP/2 against ${name}`, () => {
    const resident = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${stack.pid(name)}/status`, 'utf8'))[1]) / 1024;
    const over = ({ got, closed }) => closed || got.some(({ type }) => type === GOAWAY);

    /** Runs the attack, then checks that others get responses and that the process size is about the same. */
    async function attack(does) {
      await party.serves();
      const before = resident();
      const result = await does();
      await party.serves();
      assert.ok(resident() < before + GROWTH_MIB, `${Math.round(resident() - before)} MiB more`);
      return result;
    }

    for (const window of [0, 1]) {
      test(`answers that a window of ${window} byte blocks`, async () => {
        const requests = many(STREAMS, (at) => frame(HEADERS, END_HEADERS | (name === 'edge' ? END_STREAM : 0), odd(at), party.ask()));
        const messages = name === 'edge' ? Buffer.alloc(0) : many(STREAMS, (at) => frame(DATA, END_STREAM, odd(at), Buffer.alloc(5)));
        // Every response has begun and uses memory only for its content; the edge gives up large ones after a minute.
        const enough = (frames) => frames.filter(({ type }) => type === HEADERS).length === STREAMS;
        const { closed } = await attack(() => speak(party.port(), [requests, messages], { enough, first: settings({ [INITIAL_WINDOW_SIZE]: window }) }));
        assert.equal(closed, false, 'the connection is as good as before');
      });
    }

    test('endless settings and pings of a client that reads no answers', async () => {
      for (const one of [settings({ [INITIAL_WINDOW_SIZE]: 1 }), settings({}), frame(PING, 0, 0, Buffer.alloc(8))]) {
        await attack(() => speak(party.port(), repeated(300, many(1000, () => one)), { reads: false }));
      }
    });

    test('windows that are moved while many streams wait', async () => {
      const requests = many(STREAMS, (at) => frame(HEADERS, END_HEADERS, odd(at), party.send()));
      const moved = many(500, (at) => settings({ [INITIAL_WINDOW_SIZE]: at % 2 === 0 ? 0 : 0x7fff_ffff }));
      await attack(() => speak(party.port(), [requests, ...repeated(10, moved)], { reads: false }));
    });

    test('streams begun and reset without end', async () => {
      const burst = (from) => many(1000, (at) => Buffer.concat([
        frame(HEADERS, END_STREAM | END_HEADERS, odd(from + at), party.ask()), frame(RST_STREAM, 0, odd(from + at), Buffer.from([0, 0, 0, 8]))]));
      const flood = { * [Symbol.iterator]() { for (let from = 0; from < 500_000; from += 1000) yield burst(from); } };
      assert.ok(over(await attack(() => speak(party.port(), flood))));
    });

    test('heads that never end, of many fields and of none', async () => {
      for (const more of [field('x-a', 'b'.repeat(16_000)), Buffer.alloc(0)]) {
        const part = frame(CONTINUATION, 0, 1, more);
        const { got, closed } = await attack(() => speak(party.port(), [frame(HEADERS, END_STREAM, 1, party.ask()), ...repeated(300, many(100, () => part))]));
        assert.ok(closed && !answered(got));
      }
    });

    test('a small head that unpacks to a large one', async () => {
      const bomb = Buffer.concat([Buffer.from([0x40]), text('x-a'), text('b'.repeat(3_900)), Buffer.alloc(12_000, 0xbe)]);
      const result = await attack(() => speak(party.port(), [frame(HEADERS, END_STREAM | END_HEADERS, 1, party.ask(bomb))], {
        enough: (frames) => answered(frames) || frames.some(({ type }) => type === RST_STREAM || type === GOAWAY),
      }));
      const said = result.got.find(({ type }) => type === HEADERS);
      assert.ok(!said || !said.payload.includes('200') && said.payload[0] !== 0x88, 'it is not worked on');
    });

    test('one cookie of the table of fields, named again and again in every request', async () => {
      const cookie = Buffer.concat([Buffer.from([0x40]), text('cookie'), text(`a=${'b'.repeat(3_900)}`)]);
      const ask = (at) => frame(HEADERS, name === 'edge' ? END_STREAM | END_HEADERS : END_HEADERS, odd(at), party.ask(at === 0 ? cookie : Buffer.alloc(15, 0xbe)));
      await attack(() => speak(party.port(), [many(1_000, ask)], { enough: (frames) => frames.length > STREAMS }));
    });

    test('a table of fields as large as it can be asked for', async () => {
      const requests = many(STREAMS, (at) => frame(HEADERS, END_STREAM | END_HEADERS, odd(at), party.ask(field('x-a', `${at}`))));
      const enough = (frames) => frames.filter(({ type }) => type === HEADERS).length >= STREAMS;
      await attack(() => speak(party.port(), [requests], { enough, first: settings({ [HEADER_TABLE_SIZE]: 0xffff_ffff }) }));
    });

    test('priorities that lead in circles', async () => {
      const on = (stream) => { const payload = Buffer.alloc(5); payload.writeUInt32BE(stream); return payload; };
      const circles = many(1000, (at) => frame(PRIORITY, 0, odd(at), on(odd((at + 1) % 1000))));
      const itself = frame(PRIORITY, 0, 1, on(1));
      await attack(() => speak(party.port(), [...repeated(20, circles), itself], { reads: false }));
    });

    test('windows that grow beyond all bounds end the connection', async () => {
      const most = Buffer.from([0x7f, 0xff, 0xff, 0xff]);
      const { got } = await attack(() => speak(party.port(), [frame(WINDOW_UPDATE, 0, 0, most), frame(WINDOW_UPDATE, 0, 0, most)], {
        enough: (frames) => goaway(frames) !== undefined,
      }));
      assert.equal(goaway(got), FLOW_CONTROL_ERROR);
    });

    test('bodies of nothing, again and again', async () => {
      const nothing = many(1000, () => frame(DATA, 0, 1));
      await attack(() => speak(party.port(), [frame(HEADERS, END_HEADERS, 1, party.send()), ...repeated(300, nothing)], { reads: false }));
    });
  });
}

describe('HTTP/2 of the edge', () => {
  const { port, serves } = PARTIES.edge;
  const ask = (frames, enough) => speak(port(), frames, { enough });

  test('the edge says how many streams and how long a head it takes', async () => {
    const { got } = await ask([], (frames) => frames.some(({ type, payload }) => type === SETTINGS && payload.length > 0));
    const said = new Map();
    const { payload } = got.find(({ type }) => type === SETTINGS);
    for (let at = 0; at < payload.length; at += 6) said.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    assert.equal(said.get(3), 100, 'SETTINGS_MAX_CONCURRENT_STREAMS');
    assert.equal(said.get(6), 16_384, 'SETTINGS_MAX_HEADER_LIST_SIZE');
  });

  test('a head beyond its limit is 431', async () => {
    const [first, ...rest] = head('/api/auth/status', field('x-a', 'b'.repeat(20_000))).toString('latin1').match(/[^]{1,16000}/g);
    const parts = rest.map((part, at) => frame(CONTINUATION, at === rest.length - 1 ? END_HEADERS : 0, 1, Buffer.from(part, 'latin1')));
    const { got } = await ask([frame(HEADERS, END_STREAM, 1, Buffer.from(first, 'latin1')), ...parts], answered);
    assert.ok(got.find(({ type }) => type === HEADERS).payload.includes(STATUS_431));
    await serves();
  });

  test('what frames messages elsewhere has no place in a head, nor has a second line', async () => {
    for (const [name, value] of [['transfer-encoding', 'chunked'], ['connection', 'x-auth-subject'], ['upgrade', 'h2c'], ['X-Upper', 'a'], ['x-a', 'b\r\nx-auth-subject: admin'], ['x-a\r\nb', 'c'], [':path', '/x']]) {
      const enough = (frames) => answered(frames) || frames.some(({ type }) => type === RST_STREAM || type === GOAWAY);
      const { got } = await ask([frame(HEADERS, END_STREAM | END_HEADERS, 1, head('/api/auth/status', field(name, value)))], enough);
      assert.equal(answered(got), false, `${name}: ${value}`);
    }
    await serves();
  });

  test('a body longer than it says is refused', async () => {
    const headerBlock = post('/api/auth/backchannel-logout', field('content-length', '3'), field('content-type', 'application/x-www-form-urlencoded'));
    const enough = (frames) => answered(frames) || frames.some(({ type }) => type === RST_STREAM || type === GOAWAY);
    const { got } = await ask([frame(HEADERS, END_HEADERS, 1, headerBlock), frame(DATA, END_STREAM, 1, Buffer.from('logout_token=a'))], enough);
    assert.equal(answered(got), false);
    await serves();
  });
});
