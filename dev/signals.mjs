// `make signals-load`: ten thousand security events a minute, pushed to two edges while a session service is killed and Redis loses its
// master. Ends by itself, with what became of the events and of everybody's sessions.
//
//   node dev/signals.mjs [--seconds 60] [--rate 10000] [--kind killed|planned|frozen] [--profile debug|release]
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { processFigures } from './chaos/growth.mjs';
import { Caller, creation, repeat } from './failover.mjs';
import { processorSeconds, quantile } from './flood.mjs';
import { pause, until } from './lib/net.mjs';
import { startTopology } from './lib/redis-topology.mjs';
import { startStack } from './stack.mjs';
import { entries, field, fields, timestamp } from './tests/product/grpc.mjs';

const AUDIENCE = 'https://app.example.com/signals';
const REVOKED = 'https://schemas.openid.net/secevent/caep/event-type/session-revoked';
const PUSHES_AT_ONCE = 16; // to one edge
const PUSH_MS = 5_000; // until a push counts as not answered
const [AGAIN_MS, AGAIN_MAX_MS] = [100, 2_000]; // between two pushes of a token: at first, and at most
const GIVE_UP_MS = 60_000; // longer than anything here is down
const SIGNED_IN_S = 60; // before the load, everybody
const STALE_S = 3_600; // an event was before the load, one in KIND
const KIND = 20; // of so many events one is stale, and one is told again
const SILENT = 10; // for so many events there is one person nobody tells of
const CALLS_AT_ONCE = 48;
const OK = 0;
const [RESPONSE, FAILURE, MISSING_SESSION] = [1, 2, 1]; // of what BatchGetSessions answers
const READ_AT_ONCE = 50;
const DOWN_MS = 3_000; // the master that went down is back after this, as a replica
const REPLICA = 'session-2'; // is killed
const now = () => Math.floor(Date.now() / 1_000);

/** A provider of sessions that tells of events: its documents, its key, its tokens. */
async function startTransmitter() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' };
  let issuer;
  const documents = {
    '/jwks': () => ({ keys: [key] }),
    '/.well-known/ssf-configuration': () => ({ issuer, jwks_uri: `${issuer}/jwks` }),
    '/.well-known/openid-configuration': () => ({
      issuer, jwks_uri: `${issuer}/jwks`, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`,
      response_types_supported: ['code'], subject_types_supported: ['public'], id_token_signing_alg_values_supported: ['ES256'], code_challenge_methods_supported: ['S256'],
    }),
  };
  const server = http.createServer((request, response) => {
    const document = documents[request.url]?.();
    response.writeHead(document ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${server.address().port}`;
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return {
    issuer,
    /** The token of a session that was revoked: all sessions of a person, at a time in seconds. */
    revoked(sub, at) {
      const event = { event_timestamp: at, initiating_entity: 'admin', reason_admin: { en: 'a run' } };
      const claims = { iss: issuer, aud: AUDIENCE, iat: now(), jti: randomUUID(), sub_id: { format: 'iss_sub', iss: issuer, sub }, events: { [REVOKED]: event } };
      const signed = `${part({ alg: 'ES256', typ: 'secevent+jwt', kid: 'one' })}.${part(claims)}`;
      return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Pushes tokens as a transmitter does: so many at once, each again and the same until it is taken or refused. */
class Pushes {
  agent = new http.Agent({ keepAlive: true, maxSockets: PUSHES_AT_ONCE });
  taken = []; // [ms until 202, when]
  answers = {}; // those that were no 202, by status; 0 for none
  refused = [];
  turn = 0;

  constructor(edges) {
    this.edges = edges;
  }

  once(token) {
    this.turn += 1;
    const headers = { 'content-type': 'application/secevent+jwt', accept: 'application/json', 'content-length': token.length };
    return new Promise((resolve) => {
      const request = http.request(`${this.edges[this.turn % this.edges.length]}/api/auth/events`, { method: 'POST', agent: this.agent, headers, timeout: PUSH_MS }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => { body += chunk; }).on('end', () => resolve({ status: response.statusCode, body })).on('error', () => resolve({ status: 0 }));
      });
      request.on('timeout', () => request.destroy()).on('error', () => resolve({ status: 0 })).end(token);
    });
  }

  /** Whether it was taken in the end. */
  async deliver(token) {
    const began = performance.now();
    for (let wait = AGAIN_MS; performance.now() - began < GIVE_UP_MS; wait = Math.min(2 * wait, AGAIN_MAX_MS)) {
      const { status, body } = await this.once(token);
      if (status === 202) {
        this.taken.push([performance.now() - began, performance.now()]);
        return true;
      }
      this.answers[status] = (this.answers[status] ?? 0) + 1;
      if (status !== 0 && status !== 429 && status < 500) {
        this.refused.push(`${status} ${body}`);
        return false;
      }
      await pause(wait * (0.5 + Math.random() / 2));
    }
    return false;
  }

  /** The longest time without a single 202, in milliseconds. */
  pause() {
    const times = this.taken.map(([, when]) => when).sort((one, other) => one - other);
    return Math.max(0, ...times.slice(1).map((time, at) => time - times[at]));
  }
}

/** Does something with each of a list, so many at once. */
export async function each(list, does) {
  const rest = [...list].entries();
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, async () => {
    for (const [at, one] of rest) await does(one, at);
  }));
}

/** The answer to a call that is repeated until the service is not away. */
export async function answered(caller, method, message) {
  for (const end = performance.now() + GIVE_UP_MS; ; await pause(AGAIN_MS)) {
    const { status, message: answer } = await caller.call(method, message);
    if (status === OK) return answer;
    if (performance.now() > end) throw new Error(`${method}: gRPC ${status}`);
  }
}

/** Everybody, in the order in which they are told of; those at the end are not. */
function crowd(events) {
  const people = Array.from({ length: events }, (_, at) => ({ sub: `person ${at}`, isStale: at % KIND === 0, isRepeated: at % KIND === 1 }));
  people.push(...Array.from({ length: Math.ceil(events / SILENT) }, (_, at) => ({ sub: `somebody else ${at}`, isSilent: true })));
  return people.map((person, at) => ({ ...person, ids: [], sessions: at % 3 === 0 ? 2 : 1 }));
}

async function signIn(caller, issuer, { sub, ids }, authenticatedAt) {
  const proved = authenticatedAt ? field(5, timestamp(authenticatedAt)) : Buffer.alloc(0);
  const answer = await answered(caller, 'CreateSession', Buffer.concat([creation(issuer, sub), field(8, randomUUID()), proved]));
  ids.push(fields(answer)[1].toString());
}

/** Kills a session service at a third of the time and fails the master of Redis at two; both come back. */
export async function accidents({ stack, topology, seconds, kind, say }) {
  const third = seconds * 1_000 / 3;
  const start = performance.now();
  const at = (ms) => pause(start + ms - performance.now());
  await at(third);
  await stack.kill(REPLICA, 'SIGKILL');
  say(`${REPLICA} was killed`);
  await at(1.5 * third);
  await stack.start(REPLICA);
  say(`${REPLICA} is back`);
  await at(2 * third);
  const old = await topology.fail(kind);
  say(`the master of Redis was ${kind}`);
  await at(2 * third + DOWN_MS);
  if (kind !== 'planned') await old.comeBack();
}

/** Which of these sessions are there, at one replica. */
async function there(caller, ids) {
  const found = new Set();
  const pages = Array.from({ length: Math.ceil(ids.length / READ_AT_ONCE) }, (_, at) => ids.slice(at * READ_AT_ONCE, (at + 1) * READ_AT_ONCE));
  await each(pages, async (page) => {
    const answer = await answered(caller, 'BatchGetSessions', Buffer.concat(page.map((id) => field(1, field(1, id)))));
    entries(answer).forEach(([, result], at) => {
      const outcome = fields(result);
      if (outcome[RESPONSE]) found.add(page[at]);
      else if (fields(outcome[FAILURE])[1] !== MISSING_SESSION) throw new Error('a session cannot be read');
    });
  });
  return found;
}

/** Whose sessions are there when all is well again, at both replicas, beside whose ought to be. */
async function census({ callers, issuer, people, repeats }) {
  const told = people.filter(({ isSilent, isStale, isRepeated }) => !isSilent && !isStale && !isRepeated);
  const ended = [...told, ...repeats].flatMap(({ ids }) => ids);
  const kept = people.filter((person) => !told.includes(person)).flatMap(({ ids }) => ids);
  const [one, other] = await Promise.all(callers.map((caller) => there(caller, [...ended, ...kept])));
  let listed = 0;
  await each(told, async ({ sub }, at) => {
    const list = await answered(callers[at % callers.length], 'ListSessions', Buffer.concat([field(1, issuer), field(2, sub)]));
    if (fields(list)[1]) listed += 1;
  });
  return {
    lost: ended.filter((id) => one.has(id) || other.has(id)).length, of: ended.length, listed,
    wronglyEnded: kept.filter((id) => !one.has(id) || !other.has(id)).length, kept: kept.length,
  };
}

/** One run; gives what became of it. */
async function round(run) {
  const { stack, transmitter, callers, seconds, rate, say } = run;
  const { issuer } = transmitter;
  const events = Math.floor(rate * seconds / 60);
  const people = crowd(events);
  const began = now() - SIGNED_IN_S;
  await each(people.flatMap((person) => Array(person.sessions).fill(person)), (person, at) => signIn(callers[at % 2], issuer, person, began));
  say(`${people.length} people are signed in`);

  const pushes = new Pushes(stack.edgeUrls);
  const repeats = [];
  const resident = [];
  const looking = setInterval(() => resident.push(processFigures(stack.pid('session')).bytes), 1_000);
  const processes = { session: stack.pid('session'), edge: stack.pid('edge'), 'edge-2': stack.pid('edge-2'), transmitter: process.pid };
  const used = () => Object.values(processes).map(processorSeconds);
  const usedBefore = used();
  const start = performance.now();
  let happened = 0;
  const loading = repeat(rate / 60, async (number) => {
    if (number >= events) return;
    happened += 1;
    const person = people[number];
    const token = transmitter.revoked(person.sub, person.isStale ? began - STALE_S : now());
    person.isTaken = await pushes.deliver(token);
    if (!person.isRepeated) return;
    repeats.push({ token, ids: person.ids.splice(0) });
    await pause(AGAIN_MS); // and then comes in again; of half of them nothing but the memory of the event tells that they are not meant
    await signIn(callers[0], issuer, person, repeats.length % 2 === 0 && now() + 1);
    await pushes.deliver(token);
  });
  const happening = accidents(run);
  await until(2_000 * seconds, () => happened === events, () => `${happened} of ${events} events happened`);
  await loading();
  const elapsed = performance.now() - start;
  say('every event is answered');
  const cpu = used().map((secs, at) => ((secs - usedBefore[at]) * 1_000 / events).toFixed(1));
  const times = pushes.taken.map(([ms]) => ms).sort((one, other) => one - other);
  const longest = Math.round(pushes.pause());
  clearInterval(looking);
  await happening;
  await each(repeats, async (one) => { one.isTaken = await pushes.deliver(one.token); });

  const untaken = people.filter(({ isTaken, isSilent }) => !isTaken && !isSilent).length;
  return {
    events, untaken, perMinute: Math.round((events - untaken) / elapsed * 60_000), repeats: repeats.length, untakenRepeats: repeats.filter(({ isTaken }) => !isTaken).length,
    refused: [...new Set(pushes.refused)], ...await census({ callers, issuer, people, repeats }), sentAgain: pushes.answers,
    ms: [0.5, 0.99, 1].map((part) => Math.round(quantile(times, part))), longestPauseMs: longest,
    cpuMsPerEvent: Object.fromEntries(Object.keys(processes).map((name, at) => [name, Number(cpu[at])])),
    sessionMegabytes: [resident[0], resident.at(-1), Math.max(...resident)].map((bytes) => Math.round(bytes / 1e6)),
  };
}

/** Security events at a rate a minute, over the end of a session service and of a master of Redis; gives what became of them. */
export async function signals({ seconds = 60, rate = 10_000, kind = 'killed', profile = 'debug', say = () => {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-signals-'));
  const [topology, transmitter] = await Promise.all([startTopology('sentinel'), startTransmitter()]);
  let stack;
  let callers = [];
  try {
    const file = join(folder, 'transmitters.toml');
    writeFileSync(file, `[[transmitter]]\nid = "idp"\nissuer = "${transmitter.issuer}"\naudience = "${AUDIENCE}"\n`);
    stack = await startStack({
      profile, edges: 2, sessionServices: 2, store: topology.url, sessionEnv: { SESSION_TRANSMITTERS: file, SESSION_ENDING_REPLICAS: '1' },
      provider: { OIDC_ISSUER_URL: transmitter.issuer, OIDC_CLIENT_ID: 'signals', OIDC_CLIENT_SECRET: 'a secret of nobody' },
    });
    callers = stack.sessionUrls.map((url) => new Caller(url));
    return await round({ stack, topology, transmitter, callers, seconds, rate, kind, say });
  } finally {
    callers.forEach((caller) => caller.close());
    await stack?.stop();
    transmitter.stop();
    await topology.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What is not as it has to be. How long it took is for whoever reads the figures. */
export const complaints = ({ untaken, untakenRepeats, refused, lost, listed, wronglyEnded, sentAgain }) => [
  untaken + untakenRepeats > 0 && `${untaken} events and ${untakenRepeats} repetitions were never answered 202`, refused.length > 0 && `refused: ${refused.join('; ')}`,
  Object.keys(sentAgain).length === 0 && 'no push had to be sent again: nothing was ever away', lost > 0 && `${lost} sessions outlived their event`, listed > 0 && `${listed} people have sessions after their event`, wronglyEnded > 0 && `${wronglyEnded} sessions are gone that no event was about`,
].filter(Boolean);

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: {
    seconds: { type: 'string', default: '60' }, rate: { type: 'string', default: '10000' }, kind: { type: 'string', default: 'killed' }, profile: { type: 'string', default: 'debug' },
  } });
  const begun = performance.now();
  const say = (line) => process.stdout.write(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
  const result = await signals({ ...values, seconds: Number(values.seconds), rate: Number(values.rate), say });
  for (const [name, value] of Object.entries(result)) say(`${name.padEnd(14)} ${typeof value === 'object' ? JSON.stringify(value) : value}`);
  const wrong = complaints(result);
  wrong.forEach((complaint) => say(`wrong: ${complaint}`));
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
