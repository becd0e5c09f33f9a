// The proxies that links are made of.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';

import { Network } from '../../chaos/network.mjs';
import { until } from '../../lib/net.mjs';

const WAIT_MS = 10_000;

/** An echo behind a front, and one connection to it. */
async function connected(t, who) {
  const echo = net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const network = new Network();
  network.know('tests', process.pid);
  network.know('another', 1);
  const port = await network.front('echo', echo.address().port, who);
  const open = () => {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {});
    const heard = { text: '', ended: false };
    socket.setEncoding('utf8').on('data', (text) => { heard.text += text; }).on('close', () => { heard.ended = true; });
    t.after(() => socket.destroy());
    return { socket, heard };
  };
  t.after(() => {
    network.stop();
    echo.close();
  });
  return { network, open };
}

const comes = (heard, text) => until(WAIT_MS, () => heard.text === text, () => `heard ${heard.text}, not ${text}`);

test('who connects is known, and a fault is of one pair', async (t) => {
  const { network, open } = await connected(t, { among: ['tests', 'another'] });
  const { socket, heard } = open();
  socket.write('one');
  await comes(heard, 'one');
  network.cut('another', 'echo');
  socket.write(' two');
  await comes(heard, 'one two');
  network.cut('tests', 'echo');
  await until(WAIT_MS, () => heard.ended, () => 'the connection is not cut');
  const refused = open();
  await until(WAIT_MS, () => refused.heard.ended, () => 'another connection is not refused');
  network.heal('tests', 'echo');
  const again = open();
  again.socket.write('three');
  await comes(again.heard, 'three');
});

for (const direction of ['forward', 'back']) {
  test(`what is held ${direction} arrives in order after healing, and so does an end`, async (t) => {
    const { network, open } = await connected(t, { only: 'somebody' });
    const { socket, heard } = open();
    socket.write('a');
    await comes(heard, 'a');
    network.hold('somebody', 'echo', direction);
    socket.write('b');
    const other = open(); // a new connection is neither refused nor answered
    other.socket.end('c');
    const probe = open();
    probe.socket.write('d');
    await once(probe.socket, 'connect');
    assert.deepEqual([heard.text, other.heard.text, other.heard.ended], ['a', '', false]);
    network.heal('somebody', 'echo');
    await comes(heard, 'ab');
    await comes(other.heard, 'c');
    await until(WAIT_MS, () => other.heard.ended, () => 'the end does not arrive');
  });
}

test('a delay keeps the order and loses nothing', async (t) => {
  const { network, open } = await connected(t, { only: 'somebody' });
  const { socket, heard } = open();
  network.delay('somebody', 'echo', 60);
  const began = performance.now();
  for (let count = 0; count < 50; count += 1) socket.write(`${count},`);
  await comes(heard, Array.from({ length: 50 }, (_, count) => `${count},`).join(''));
  assert.ok(performance.now() - began >= 119, 'both ways are delayed');
});
