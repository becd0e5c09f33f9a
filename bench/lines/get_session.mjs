// P5: GetSession by another service over gRPC, server side, next to a bare tonic service that asks Redis.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { h2load, shares, spread } from '../lib/measure.mjs';
import { releaseStack, serving, signedIn, startChain } from '../lib/services.mjs';

const PATH = '/session.v1.SessionService/GetSession';
const HEADERS = { 'content-type': 'application/grpc', te: 'trailers' };
const LOAD = { headers: HEADERS, clients: 4, streams: 8 };
const BOUND_BYTES = 300;

/** A gRPC message with its prefix of five bytes; field 1 is this text. */
function message(text) {
  const field = Buffer.concat([Buffer.from([0x0a, text.length]), Buffer.from(text)]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(field.length, 1);
  return Buffer.concat([head, field]);
}

export async function getSession({ rounds, seconds, say, cleanup }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bench-'));
  cleanup({ stop: () => rmSync(folder, { recursive: true, force: true }) });
  const sent = (name, text) => {
    const file = join(folder, name);
    writeFileSync(file, message(text));
    return file;
  };
  const cases = [];
  for (const [store, id] of [['redis', 'P5 Redis'], ['file:', 'P5 embedded']]) {
    const stack = cleanup(await releaseStack({ store }));
    const { sessionId } = await signedIn(stack);
    const pids = serving(stack).filter(([name]) => name !== 'edge');
    cases.push({
      id, bound: 'rpc', work: `GetSession over gRPC, server side, ${store === 'redis' ? 'with Redis' : 'on the embedded store'}`,
      one: { ...LOAD, url: `${stack.sessionUrls[0]}${PATH}`, data: sent(id.replace(' ', '-'), sessionId), pids }, answered: () => counted(stack),
    });
  }
  const chain = cleanup(await startChain(BOUND_BYTES));
  cases.push({ id: 'rpc', work: 'bare tonic, one Redis GET, server side', one: { ...LOAD, url: chain.sessionUrl, data: sent('bound', 'bound'), pids: chain.pids.filter(([name]) => name !== 'edge') } });
  for (const { one } of cases) await h2load({ ...one, count: 2000 });
  const results = new Map(cases.map((one) => [one, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const [{ id, one, answered }, all] of results) {
      const before = await answered?.();
      const result = await h2load({ ...one, count: seconds * 10_000 });
      // The HTTP status is 200 even for gRPC errors: the service's own count shows whether it found sessions.
      if (answered && (await answered()) - before < result.requests) throw new Error(`the service answered fewer than ${result.requests} calls with OK`);
      all.push(result);
      say(`round ${round} ${id}: ${result.micros.toFixed(1)} µs`);
    }
  }
  return { rows: [...results].map(([{ id, bound, work }, all]) => ({ id, bound, work, unit: 'CPU µs', ...spread(all.map(({ micros }) => micros)), by: shares(all) })) };
}

/** The service's count of GetSession calls that it answered with OK. */
async function counted(stack) {
  const metrics = await (await fetch(`${stack.adminUrls.session}/metrics`)).text();
  const line = metrics.split('\n').find((text) => text.startsWith('rpc_server_call_duration_seconds_count') && text.includes('GetSession"') && text.includes('"OK"'));
  return Number(line?.split(' ').at(-1) ?? 0);
}
