// How many source files a request leads through: what somebody who follows it from its first byte to its last has to open.
//
//   node dev/walks.mjs               a table, in markdown
//   node dev/walks.mjs --files       each file too, with how much of it ran
//   node dev/walks.mjs --functions   each function too: walk, file:line:column, lines
//
// Both programs are built with coverage counters, which are in a file while they run (LLVM's continuous mode), so that nothing has to
// stop for them to be read. A walk is taken TIMES times, one after another, on a connection that stands. A function belongs to it when it
// ran at least every other time, beyond what it runs while nobody asks for as long as the walk took, and did so in each of ROUNDS rounds.
//
//   files   files with such a function. Source of ours alone: no generated code, no tests, no dependency; derived code has no counters
//   read    of these, the ones with such a function of more than PASSING_LINES lines, signature and braces included: what is shorter (a
//           getter, a constructor, a call passed on) is understood by its name where it is called
//   own     of these, the ones that not every walk leads through. What every walk leads through, the shell, is the first row: connection,
//           log, layer, protection, session cookie. It is read once
//
// The last columns tell whose the read ones are. What a request causes after its answer, such as the event of a new session on its way to
// every edge, counts. Needs `rustup component add llvm-tools`.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';

import { cargoBuild } from './lib/build.mjs';
import { freePort, pause } from './lib/net.mjs';
import { binary, ROOT, startStack } from './stack.mjs';
import { Client } from './tests/product/client.mjs';

const TIMES = 40; // more than what happens ten times a second happens more or less in a walk and in the idle time as long
const ROUNDS = 2; // what sweeps over all sessions now and then does it in one of them
const PASSING_LINES = 3;
const SETTLED_MS = 500; // what a request leaves behind (records, measures) has been done
const LIFETIME = 4; // seconds; an access token counts as expired with half of it left
const DUE_MS = 3_000; // after this every token is
const NO_LIMIT = '1000000'; // the limit of logins stays, for it is on the way, and is not reached
const OURS = /^(?:auth-edge|session-svc|proto|crates\/[\w-]+)\/src\/(?!.*\bgen\/)/;
const WHOSE = { 'auth-edge': /^auth-edge/, 'session-svc': /^session-svc/, libraries: /^(?:crates|proto)/ };

const scratch = mkdtempSync(join(tmpdir(), 'vestibule-walks-'));

// ---------------------------------------------------------------- programs that count

/** The two programs with counters, beside the ordinary ones; what they depend on is compiled once for both and does not count. */
async function build() {
  const target = resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target');
  const folder = join(target, 'walks');
  const wrapper = join(folder, 'instrumented');
  mkdirSync(folder, { recursive: true });
  const flags = ['-Cinstrument-coverage', '-Cllvm-args=-runtime-counter-relocation', '-Cllvm-args=-instrprof-atomic-counter-update-all'];
  writeFileSync(wrapper, `#!/bin/sh\nexec "$@" ${flags.join(' ')}\n`);
  chmodSync(wrapper, 0o755);
  Object.assign(process.env, { CARGO_TARGET_DIR: folder, CARGO_BUILD_BUILD_DIR: target, RUSTC_WORKSPACE_WRAPPER: wrapper });
  await cargoBuild(['--bin', 'auth-edge', '--bin', 'session-svc', '--example', 'session_api'], { quiet: false });
}

const llvmTool = (() => {
  const [sysroot, about] = [['--print', 'sysroot'], ['--version', '--verbose']].map((args) => execFileSync('rustc', args, { encoding: 'utf8' }).trim());
  const folder = join(sysroot, 'lib/rustlib', /^host: (.+)$/m.exec(about)[1], 'bin');
  assert.ok(existsSync(join(folder, 'llvm-cov')), 'install the tools first: rustup component add llvm-tools');
  return (name, args) => execFileSync(join(folder, name), args, { encoding: 'utf8', maxBuffer: Infinity, stdio: ['ignore', 'pipe', 'inherit'] });
})();

// ---------------------------------------------------------------- counters

let snapshots = 0;

/** The counters as they are now. */
function snapshot() {
  const folder = join(scratch, String(snapshots += 1));
  mkdirSync(folder);
  for (const name of readdirSync(scratch).filter((each) => each.endsWith('.profraw'))) copyFileSync(join(scratch, name), join(folder, name));
  return folder;
}

/** How often each function of ours had run by then: `file:line:column` → {file, lines, count}; a generic one's copies count as one. */
function functions(folder) {
  const profile = join(folder, 'merged');
  llvmTool('llvm-profdata', ['merge', '--output', profile, ...readdirSync(folder).map((name) => join(folder, name))]);
  const text = llvmTool('llvm-cov', ['export', '--skip-expansions', '--instr-profile', profile, binary('auth-edge'), '--object', binary('session-svc')]);
  const found = new Map();
  for (const { count, filenames, regions } of JSON.parse(text).data[0].functions) {
    const file = relative(ROOT, filenames[0]);
    if (!OURS.test(file)) continue;
    const own = regions.filter(([, , , , , of]) => of === 0);
    const [line, column] = own[0];
    const key = `${file}:${line}:${column}`;
    const lines = Math.max(...own.map(([, , end]) => end)) - line + 1;
    found.set(key, { file, lines, count: (found.get(key)?.count ?? 0) + count });
  }
  return found;
}

/** What ran between two of three snapshots and did not run as much between the others: `file:line:column` → {file, lines}. */
function between([before, after, later]) {
  const [first, second, third] = [before, after, later].map(functions);
  const count = (of, key) => of.get(key)?.count ?? 0;
  return new Map([...third].filter(([key]) => {
    const [busy, idle] = [count(second, key) - count(first, key), count(third, key) - count(second, key)];
    return busy - idle >= TIMES / 2;
  }));
}

/** The functions of every round, by file: file → [{key, lines}, …]. */
function byFile(rounds) {
  const [first, ...others] = rounds.map(between);
  const files = new Map();
  for (const [key, { file, lines }] of first) {
    if (others.every((other) => other.has(key))) files.set(file, [...files.get(file) ?? [], { key, lines }]);
  }
  return new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1)));
}

// ---------------------------------------------------------------- walks

async function taken() {
  const upstream = createServer((_, response) => response.end('hello')).listen(await freePort(), '127.0.0.1');
  await new Promise((done) => upstream.once('listening', done));
  const routes = join(scratch, 'routes.toml');
  writeFileSync(routes, `[[route]]\npath = "/app/*"\nupstream = "http://127.0.0.1:${upstream.address().port}"\nguard = "api"\n`);
  const edgeEnv = { EDGE_ACCESS_TOKEN_ENDPOINT: 'true', EDGE_RATE_LIMIT_LOGIN: NO_LIMIT, EDGE_SESSION_CACHE_SECS: '60' };
  const stack = await startStack({ routes, accessTokenTtl: LIFETIME, edgeEnv });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const walks = new Map();

  /** One walk of each person, after one that is not counted: it sets up what lasts. */
  async function walk(name, people, work) {
    const status = async (person) => {
      const answer = await work(person);
      assert.ok(answer.status >= 200 && answer.status < 400, `${name}: ${answer.status} ${answer.text}\n${stack.logs('edge').slice(-3_000)}`);
    };
    await status(people[0]);
    await pause(SETTLED_MS);
    const [start, before] = [Date.now(), snapshot()];
    for (const person of people.slice(1)) await status(person);
    await pause(SETTLED_MS);
    const [end, after] = [Date.now(), snapshot()];
    await pause(end - start);
    walks.set(name, [...walks.get(name) ?? [], [before, after, snapshot()]]);
  }

  async function round(account) {
    const people = Array.from({ length: TIMES + 1 }, () => Object.assign(new Client(), { agent }));
    const callbacks = new Map();
    await walk('login', people, (person) => person.navigate(`${stack.edgeUrl}/api/auth/login`));
    for (const person of people) callbacks.set(person, await person.authorize(stack, { account }));
    await walk('callback', people, (person) => person.navigate(callbacks.get(person)));
    await walk('asked me', people, (person) => person.me(stack));
    await walk('cached me', people, (person) => person.me(stack));
    await walk('proxied route', people, (person) => person.fetch(`${stack.edgeUrl}/app/hello`));
    await pause(DUE_MS);
    const headers = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
    await walk('refresh', people, (person) => person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers }));
  }

  try {
    for (const account of stack.accounts.slice(0, ROUNDS)) await round(account);
  } finally {
    agent.destroy();
    await stack.stop();
    upstream.close();
  }
  return new Map([...walks].map(([name, rounds]) => [name, byFile(rounds)]));
}

// ---------------------------------------------------------------- what is told

const largest = (ran) => Math.max(...ran.map(({ lines }) => lines));
const row = (cells) => process.stdout.write(`| ${cells.join(' | ')} |\n`);

function table(walks) {
  const read = new Map([...walks].map(([name, files]) => [name, [...files].filter(([, ran]) => largest(ran) > PASSING_LINES).map(([file]) => file)]));
  const shared = (of) => of[0].filter((file) => of.every((files) => files.includes(file)));
  const shell = shared([...read.values()]);
  const whose = (files) => Object.values(WHOSE).map((of) => files.filter((file) => of.test(file)).length);
  row(['walk', 'files', 'read', 'own', ...Object.keys(WHOSE)]);
  row(['---', ...Array(3 + Object.keys(WHOSE).length).fill('--:')]);
  row(['every one', shared([...walks.values()].map((files) => [...files.keys()])).length, shell.length, '', ...whose(shell)]);
  for (const [name, files] of walks) {
    row([name, files.size, read.get(name).length, read.get(name).length - shell.length, ...whose(read.get(name))]);
  }
}

function listFiles(walks) {
  for (const [name, files] of walks) {
    process.stdout.write(`\n### ${name}\n\n`);
    row(['file', 'functions', 'lines', 'longest']);
    row(['---', '--:', '--:', '--:']);
    for (const [file, ran] of files) row([file, ran.length, ran.reduce((sum, { lines }) => sum + lines, 0), largest(ran)]);
  }
}

function listFunctions(walks) {
  for (const [name, files] of walks) {
    process.stdout.write('\n');
    for (const { key, lines } of [...files.values()].flat()) process.stdout.write(`${name}\t${key}\t${lines}\n`);
  }
}

try {
  process.env.LLVM_PROFILE_FILE = join(scratch, '%p%c.profraw');
  await build();
  const walks = await taken();
  const asks = (name) => [...walks.get(name).keys()].some((file) => WHOSE['session-svc'].test(file));
  assert.deepEqual(['asked me', 'cached me', 'proxied route'].map(asks), [true, false, false], 'the edge asks only for what it does not know; where the machine is so busy that it misses heartbeats, run this again');
  table(walks);
  if (process.argv.includes('--files')) listFiles(walks);
  if (process.argv.includes('--functions')) listFunctions(walks);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
