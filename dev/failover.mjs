// `make failover`: replaces Redis masters many times, as an operator and as an accident would, under load on two
// session services and three edges. Ends with a table of the cost.
//
//   node dev/failover.mjs [--rounds 10] [--topology sentinel,cluster] [--kind planned,killed,frozen]
//                         [--profile debug|release]
import http from 'node:http';
import http2 from 'node:http2';
import { parseArgs } from 'node:util';

import { pause } from './lib/net.mjs';
import { startTopology } from './lib/redis-topology.mjs';
import { startStack } from './stack.mjs';
import { Client } from './tests/product/client.mjs';
import { field, fields } from './tests/product/grpc.mjs';

const READS_PER_S = 200; // of users at the edges
const CALLS_PER_S = 100; // of the session services: creations, reads, endings
const PEOPLE = 24; // signed in for a round; the failover happens while half of them are signed out
const BEFORE_MS = 2_000; // of load before the failover
const AFTER_MS = 9_000; // and after
const DOWN_MS = 6_000; // until a failed server is back
const LOOK_MS = 40; // between two requests of a signed-out user
const LOOKED_MS = 2_500; // the time after the ending to check
const HONOURED_MAX_MS = 1_000; // promised: every edge sees an ending within a second
const PLANNED_MAX_S = 2; // the longest time of refusals in a planned failover
const SUBJECTS = 500; // of created sessions: few enough for each that the limit of sessions ends none
const SLICE_MS = 100; // a slice of time with a refusal counts as refused
const [OK, DEADLINE_EXCEEDED, NOT_FOUND, UNAVAILABLE] = [0, 4, 5, 14];
const CALL_MS = 8_000;

/** A connection to a session service; connects again when it breaks. */
export class Caller {
  constructor(url) {
    this.url = url;
  }

  /** The status and the message of a call. */
  call(method, message) {
    if (!this.session || this.session.closed || this.session.destroyed) {
      this.session = http2.connect(this.url);
      this.session.on('error', () => {});
    }
    return new Promise((resolve) => {
      const head = Buffer.alloc(5);
      head.writeUInt32BE(message.length, 1);
      const chunks = [];
      let status = UNAVAILABLE;
      const heard = (headers) => { if (headers['grpc-status'] !== undefined) status = Number(headers['grpc-status']); };
      const stream = this.session.request({ ':method': 'POST', ':path': `/session.v1.SessionService/${method}`, 'content-type': 'application/grpc', te: 'trailers' });
      stream.setTimeout(CALL_MS, () => stream.close());
      stream.on('response', heard).on('trailers', heard).on('data', (chunk) => chunks.push(chunk)).on('error', () => {});
      stream.on('close', () => resolve({ status, message: Buffer.concat(chunks).subarray(5) }));
      stream.end(Buffer.concat([head, message]));
    });
  }

  close() {
    this.session?.close();
  }
}

export const creation = (issuer, sub) => Buffer.concat([
  field(1, issuer), field(2, JSON.stringify({ sub })), field(3, field(1, 'access')),
]);

const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

/** The status of a request to an edge; 0 without an answer. */
function at(edge, cookie) {
  return new Promise((resolve) => {
    const request = http.get(`${edge}/api/auth/me`, { agent, timeout: CALL_MS, headers: { cookie, accept: 'application/json' } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode)).on('error', () => resolve(0));
    });
    request.on('timeout', () => request.destroy()).on('error', () => resolve(0));
  });
}

/** Calls something at a rate until stopped, and then waits for open calls. */
export function repeat(perSecond, does) {
  const under = new Set();
  let due = performance.now();
  let number = 0;
  const timer = setInterval(() => {
    for (; due < performance.now(); due += 1_000 / perSecond) {
      const doing = does(number).finally(() => under.delete(doing));
      under.add(doing);
      number += 1;
    }
  }, 5);
  return async () => {
    clearInterval(timer);
    await Promise.all(under);
    return number;
  };
}

const pick = (list) => list[Math.floor(Math.random() * list.length)];

/** Seconds with refusals, in slices. */
const refusedSeconds = (times) => new Set(times.map((time) => Math.floor(time / SLICE_MS))).size * SLICE_MS / 1_000;

async function signedIn(stack, number) {
  const client = new Client();
  await client.signIn(stack, { account: stack.accounts[number % stack.accounts.length] });
  const [name, value] = client.sessionCookie(stack);
  return { cookie: `${name}=${value}`, id: decodeURIComponent(value).split('.')[0] };
}

async function round({ stack, callers, topology, kind, load }) {
  const people = [];
  for (let number = 0; number < PEOPLE; number += 1) people.push(await signedIn(stack, number));
  const staying = people.slice(0, PEOPLE / 2);
  const seen = { refusedReads: [], refusedCalls: [], refusedOf: {}, odd: [], signedOut: 0, honoured: 0 };
  const created = new Map(); // id → 'there', 'ended', or 'unknown' after an ending without an answer

  const reading = repeat(READS_PER_S * load, async (number) => {
    const began = performance.now();
    const status = await at(stack.edgeUrls[number % stack.edgeUrls.length], pick(staying).cookie);
    if (status === 503) seen.refusedReads.push(began);
    else if (status === 204 || status === 401) seen.signedOut += 1;
    else if (status !== 200) seen.odd.push(`me ${status}`);
  });
  const calling = repeat(CALLS_PER_S * load, async (number) => {
    const began = performance.now();
    const caller = callers[number % callers.length];
    const there = [...created].filter(([, state]) => state === 'there');
    const turn = there.length < 20 ? 0 : number % 10;
    let status;
    const method = ['CreateSession', 'GetSession', 'EndSession'][(turn >= 5) + (turn >= 8)];
    if (turn < 5) {
      const answer = await caller.call('CreateSession', creation(stack.issuer, `person ${number % SUBJECTS}`));
      status = answer.status;
      if (status === OK) created.set(fields(answer.message)[1].toString(), 'there');
    } else if (turn < 8) {
      const [id] = pick(there);
      status = (await caller.call('GetSession', field(1, id))).status;
      if (status === NOT_FOUND && created.get(id) === 'there') seen.odd.push('a session was not found');
      if (status === NOT_FOUND) status = OK;
    } else {
      const [id] = pick(there);
      created.set(id, 'unknown');
      status = (await caller.call('EndSession', field(1, id))).status;
      if (status === OK) created.set(id, 'ended');
    }
    if ([UNAVAILABLE, DEADLINE_EXCEEDED].includes(status)) { // a call that waited for the master and failed is refused too
      seen.refusedCalls.push(began);
      const of = `${method} ${number % callers.length + 1}`;
      seen.refusedOf[of] = (seen.refusedOf[of] ?? 0) + 1;
    } else if (status !== OK) seen.odd.push(`gRPC ${status}`);
  });

  await pause(BEFORE_MS);
  const old = await topology.fail(kind);
  const looking = [];
  const leaving = people.slice(PEOPLE / 2);
  const ended = [];
  for (const [number, person] of leaving.entries()) {
    const { status } = await callers[number % callers.length].call('EndSession', field(1, person.id));
    if (status === OK) {
      const since = performance.now();
      ended.push(person);
      looking.push((async () => {
        while (performance.now() - since < LOOKED_MS) {
          const elapsed = performance.now() - since;
          const answers = await Promise.all(stack.edgeUrls.map((edge) => at(edge, person.cookie)));
          if (answers.includes(200)) seen.honoured = Math.max(seen.honoured, elapsed);
          await pause(LOOK_MS);
        }
      })());
    }
    await pause(AFTER_MS / leaving.length / 2);
  }
  if (kind !== 'planned') {
    await pause(Math.max(0, DOWN_MS - AFTER_MS / 2));
    await old.comeBack();
  }
  await pause(AFTER_MS / 2);
  const requests = (await reading()) + (await calling());
  await Promise.all(looking);
  await topology.settled();

  // The sessions after the recovery.
  const found = async (id) => {
    for (;;) {
      const { status } = await callers[0].call('GetSession', field(1, id));
      if ([OK, NOT_FOUND].includes(status)) return status === OK;
      await pause(LOOK_MS);
    }
  };
  let [lost, undone] = [0, 0];
  for (const [id, state] of created) {
    if (state === 'there' && !(await found(id))) lost += 1;
    if (state === 'ended' && (await found(id))) undone += 1;
  }
  for (const person of ended) if (await found(person.id)) undone += 1;
  for (const person of staying) if (!(await found(person.id))) seen.signedOut += 1;
  return {
    requests, written: created.size, ended: ended.length + [...created.values()].filter((state) => state === 'ended').length,
    reads: refusedSeconds(seen.refusedReads), calls: refusedSeconds(seen.refusedCalls), lost, undone, honoured: seen.honoured, signedOut: seen.signedOut, refusedOf: seen.refusedOf, odd: seen.odd,
  };
}

/** Runs rounds of one failover of a topology, and returns the cost of each. `load` is a share of the usual. */
export async function failovers({ topology: which, kind, rounds = 1, profile = 'debug', load = 1, onRound = () => {} }) {
  const topology = await startTopology(which);
  let stack;
  let callers = [];
  try {
    stack = await startStack({ profile, edges: 3, sessionServices: 2, store: topology.url, edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0' } });
    callers = stack.sessionUrls.map((url) => new Caller(url));
    const results = [];
    for (let number = 0; number < rounds; number += 1) {
      results.push(await round({ stack, callers, topology, kind, load }));
      onRound(results.at(-1));
    }
    return results;
  } finally {
    callers.forEach((caller) => caller.close());
    await stack?.stop();
    await topology.stop();
  }
}

/** The faults of a result. Only the command checks times, because they depend on the machine. */
export const complaints = (results) => results.flatMap(({ lost, undone, signedOut, honoured, odd }) => [
  lost > 0 && `${lost} acknowledged sessions lost`, undone > 0 && `${undone} endings undone`, signedOut > 0 && `people were signed out ${signedOut} times`,
  honoured > HONOURED_MAX_MS && `an ended session was honoured for ${Math.round(honoured)} ms`, odd.length > 0 && `odd answers: ${[...new Set(odd)].join(', ')}`,
]).filter(Boolean);

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({ options: {
    rounds: { type: 'string', default: '10' }, topology: { type: 'string', default: 'sentinel,cluster' }, kind: { type: 'string', default: 'planned,killed,frozen' }, profile: { type: 'string' },
  } });
  const say = (line) => process.stdout.write(`${line}\n`);
  const sum = (results, name) => results.reduce((total, result) => total + result[name], 0);
  const range = (results, name) => {
    const sorted = results.map((result) => result[name]).sort((one, other) => one - other);
    return `${sorted[Math.floor(sorted.length / 2)].toFixed(1)} / ${sorted.at(-1).toFixed(1)}`;
  };
  const rows = [];
  const wrong = [];
  for (const topology of values.topology.split(',')) {
    for (const kind of values.kind.split(',')) {
      const onRound = (result) => say(`${topology} ${kind}: ${JSON.stringify({ ...result, odd: [...new Set(result.odd)] })}`);
      const results = await failovers({ topology, kind, rounds: Number(values.rounds), onRound, ...(values.profile && { profile: values.profile }) });
      rows.push(`| ${topology} | ${kind} | ${results.length} | ${sum(results, 'requests')} | ${range(results, 'reads')} | ${range(results, 'calls')} | ${sum(results, 'lost')} of ${sum(results, 'written')} | ${sum(results, 'undone')} of ${sum(results, 'ended')} | ${Math.round(Math.max(...results.map(({ honoured }) => honoured)))} ms | ${sum(results, 'signedOut')} |`);
      wrong.push(...complaints(results).map((complaint) => `${topology} ${kind}: ${complaint}`));
      if (kind === 'planned' && results.some(({ reads, calls }) => Math.max(reads, calls) > PLANNED_MAX_S)) wrong.push(`${topology} planned: refused for longer than ${PLANNED_MAX_S} s`);
    }
  }
  say('| Topology | Failover | Rounds | Requests | s of 503 at edges, median / most | of refused gRPC | acknowledged writes lost | endings undone | longest honoured | signed out |');
  say('|---|---|---|---|---|---|---|---|---|---|');
  rows.forEach(say);
  wrong.forEach((complaint) => say(`wrong: ${complaint}`));
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
