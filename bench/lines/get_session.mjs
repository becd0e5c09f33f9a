// P5: GetSession by another service over gRPC, server side.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { h2load, shares, spread } from '../lib/measure.mjs';
import { releaseStack, serving, signedIn } from '../lib/services.mjs';

const PATH = '/session.v1.SessionService/GetSession';
const HEADERS = { 'content-type': 'application/grpc', te: 'trailers' };

/** A gRPC message (five bytes before it) whose field 1 is this text. */
function message(text) {
  const field = Buffer.concat([Buffer.from([0x0a, text.length]), Buffer.from(text)]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(field.length, 1);
  return Buffer.concat([head, field]);
}

export async function getSession({ rounds, seconds, say, cleanup }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bench-'));
  const cases = [];
  for (const [store, goal] of [['redis', '≤ 20'], ['file:', '≤ 14']]) {
    const stack = cleanup(await releaseStack({ store }));
    const { sessionId } = await signedIn(stack);
    const data = join(folder, store.replace(':', ''));
    writeFileSync(data, message(sessionId));
    const pids = serving(stack).filter(([name]) => name !== 'edge');
    const one = { url: `${stack.sessionUrls[0]}${PATH}`, headers: HEADERS, data, pids, clients: 4, streams: 8 };
    const calls = async () => counted(stack);
    await h2load({ ...one, count: 2000 });
    cases.push({ store, goal, one, calls, results: [] });
  }
  for (let round = 1; round <= rounds; round += 1) {
    for (const { store, one, calls, results } of cases) {
      const before = await calls();
      const result = await h2load({ ...one, count: seconds * 10_000 });
      const answered = (await calls()) - before;
      // An answer of HTTP is 200 whatever gRPC says: the service's own count tells whether sessions were found.
      if (answered < result.requests) throw new Error(`${result.requests} calls, but ${answered} answered OK`);
      results.push(result);
      say(`round ${round} P5 ${store}: ${result.micros.toFixed(1)} µs`);
    }
  }
  return cases.map(({ store, goal, results }) => ({ id: `P5 ${store}`, work: 'GetSession over gRPC, server side with its store', unit: 'CPU µs', goal, ...spread(results.map(({ micros }) => micros)), detail: shares(results) }));
}

/** GetSession calls answered OK so far, as the service counts them. */
async function counted(stack) {
  const metrics = await (await fetch(`${stack.adminUrls.session}/metrics`)).text();
  const line = metrics.split('\n').find((text) => text.startsWith('rpc_server_call_duration_seconds_count') && text.includes('GetSession"') && text.includes('"OK"'));
  return Number(line?.split(' ').at(-1) ?? 0);
}
