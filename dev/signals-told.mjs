// `make signals-told`: the other direction of `make signals-load`. Sessions end ten thousand times a minute while a session service is killed and
// Redis loses its master, and a receiver has to hear of each. Ends by itself, with what it heard.
//
//   node dev/signals-told.mjs [--seconds 60] [--rate 10000] [--kind killed|planned|frozen] [--profile debug|release]
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { Caller, creation, repeat } from './failover.mjs';
import { quantile } from './flood.mjs';
import { until } from './lib/net.mjs';
import { startTopology } from './lib/redis-topology.mjs';
import { accidents, answered, each } from './signals.mjs';
import { startStack } from './stack.mjs';
import { field, fields } from './tests/product/grpc.mjs';

const PROVIDER = 'http://127.0.0.1:9'; // nobody is asked there
const HEARD_MS = 120_000; // until the last event has come, at most

/** A receiver that takes everything, and when it heard of whom first. */
async function startReceiver() {
  const heard = new Map();
  let repeated = 0;
  const server = http.createServer((request, response) => {
    let token = '';
    request.setEncoding('utf8').on('data', (chunk) => { token += chunk; }).on('end', () => {
      const { sub_id: subject } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));
      if (heard.has(subject.user.sub)) repeated += 1;
      else heard.set(subject.user.sub, performance.now());
      response.writeHead(202).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/events`, heard, repeated: () => repeated,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function round({ stack, topology, receiver, callers, seconds, rate, kind, say }) {
  const events = Math.floor(rate * seconds / 60);
  const people = Array.from({ length: events }, (_, at) => ({ sub: `person ${at}` }));
  await each(people, async (person, at) => {
    const answer = await answered(callers[at % 2], 'CreateSession', Buffer.concat([creation(PROVIDER, person.sub), field(8, randomUUID())]));
    person.id = fields(answer)[1].toString();
  });
  say(`${events} people are signed in`);
  let ended = 0;
  const ending = repeat(rate / 60, async (number) => {
    const person = people[number];
    if (!person) return;
    // Again until it is answered, as a caller has to.
    await answered(callers[number % 2], 'EndSession', field(1, person.id));
    person.endedAt = performance.now();
    ended += 1;
  });
  const happening = accidents({ stack, topology, seconds, kind, say });
  await until(4_000 * seconds, () => ended === events, () => `${ended} of ${events} sessions have ended`);
  await ending();
  await happening;
  say('every ending is answered');
  await until(HEARD_MS, () => receiver.heard.size >= events, () => '').catch(() => {});
  const waits = people.filter(({ sub }) => receiver.heard.has(sub)).map(({ sub, endedAt }) => Math.max(0, receiver.heard.get(sub) - endedAt)).sort((one, other) => one - other);
  return { events, lost: events - receiver.heard.size, repeated: receiver.repeated(), ms: [0.5, 0.99, 1].map((part) => Math.round(quantile(waits, part))) };
}

/** Endings at a rate a minute, over the end of a session service and of a master of Redis; gives what a receiver heard of them. */
export async function told({ seconds = 60, rate = 10_000, kind = 'killed', profile = 'debug', say = () => {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-told-'));
  const [topology, receiver] = await Promise.all([startTopology('sentinel'), startReceiver()]);
  let stack;
  let callers = [];
  const file = (name, text) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  try {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const receivers = file('receivers.toml', [
      'issuer = "https://sessions.example"', `signing_key_file = "${file('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }))}"`,
      '[[receiver]]', 'id = "siem"', 'audience = "https://siem.example"', `url = "${receiver.url}"`, '',
    ].join('\n'));
    stack = await startStack({
      profile, sessionServices: 2, store: topology.url, sessionEnv: { SESSION_RECEIVERS: receivers, SESSION_ENDING_REPLICAS: '1' },
      provider: { OIDC_ISSUER_URL: PROVIDER, OIDC_CLIENT_ID: 'signals', OIDC_CLIENT_SECRET: 'a secret of nobody' },
    });
    callers = stack.sessionUrls.map((url) => new Caller(url));
    return await round({ stack, topology, receiver, callers, seconds, rate, kind, say });
  } finally {
    callers.forEach((caller) => caller.close());
    await stack?.stop();
    receiver.stop();
    await topology.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: {
    seconds: { type: 'string', default: '60' }, rate: { type: 'string', default: '10000' }, kind: { type: 'string', default: 'killed' }, profile: { type: 'string', default: 'debug' },
  } });
  const begun = performance.now();
  const say = (line) => process.stdout.write(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
  const result = await told({ ...values, seconds: Number(values.seconds), rate: Number(values.rate), say });
  for (const [name, value] of Object.entries(result)) say(`${name.padEnd(10)} ${typeof value === 'object' ? JSON.stringify(value) : value}`);
  process.exitCode = result.lost === 0 ? 0 : 1;
}
