// The audit log of the real programs: who did what, with one request ID everywhere, in a separate stream.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { pause, probe, until } from '../../lib/net.mjs';
import { binary, startStack } from '../../stack.mjs';
import { Client } from './client.mjs';

const PATIENCE_MS = 20_000;
let folder;
let stack;
const file = (service) => join(folder, `${service}.log`);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vestibule-audit-'));
  writeFileSync(join(folder, 'routes.toml'), '');
  stack = await startStack({
    accessTokenTtl: 1,
    routes: join(folder, 'routes.toml'),
    edgeEnv: { AUDIT_LOG: file('edge'), EDGE_RATE_LIMIT_LOGIN: '0' },
    sessionEnv: { AUDIT_LOG: file('session') },
  });
});
after(async () => {
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const linesOf = (path) => readFileSync(path, 'utf8').split('\n').filter(Boolean);
const records = (service) => linesOf(file(service)).map((line) => JSON.parse(line));

/** Waits for this number of matching records and returns them. */
async function recorded(service, matches, count = 1) {
  let found = [];
  await until(PATIENCE_MS, () => {
    found = records(service).filter(matches);
    return found.length >= count;
  }, () => `${count} records of ${service} in ${readFileSync(file(service), 'utf8')}`);
  assert.equal(found.length, count, JSON.stringify(found));
  return found;
}

/** Runs an operator's command; returns its exit code and its JSON document. */
function operator(...args) {
  const { status, stdout, stderr } = spawnSync(binary('session-svc'), [...args, '--json'], { encoding: 'utf8', env: { PATH: process.env.PATH, OIDC_ISSUER_URL: stack.issuer } });
  assert.ok(stdout, stderr);
  return { status, document: JSON.parse(stdout) };
}

const idOf = (answer) => answer.headers.get('x-request-id');
const of = (id) => (record) => record.request_id === id;
const methods = (found) => found.map((record) => record['rpc.method'].split('/').pop());

test('a sign-in is found in both services, the access record and the browser by one request ID', async () => {
  const person = new Client();
  const callback = await person.authorize(stack);
  const landed = await person.navigate(callback);
  const id = idOf(landed);

  const [signIn] = await recorded('edge', of(id));
  assert.equal(signIn.event, 'sign_in');
  assert.equal(signIn.outcome, 'success');
  assert.equal(signIn['client.address'], '127.0.0.1');
  assert.equal(signIn.provider.length > 0, true);
  const calls = await recorded('session', of(id), 2);
  assert.deepEqual(methods(calls), ['BeginSignIn', 'CreateSession']);
  const created = calls[1];
  assert.equal(created.session, signIn.session);
  const access = () => stack.logs('edge').split('\n').filter((line) => line.includes(id)).map((line) => JSON.parse(line));
  await until(PATIENCE_MS, () => access().length > 0, () => stack.logs('edge'));
  assert.deepEqual(access().map((record) => [record.message, record['session.handle']]), [['request', signIn.session]]);

  const subject = (await person.me(stack)).json().sub;
  for (const record of [signIn, created]) {
    assert.equal(record['actor.issuer'], stack.issuer);
    assert.equal(record['actor.subject'], subject);
    assert.deepEqual([record.target, record.schema], ['audit', '1.1']);
  }

  const written = readFileSync(file('edge'), 'utf8') + readFileSync(file('session'), 'utf8');
  const { searchParams } = new URL(callback);
  for (const secret of [person.sessionCookie(stack)[1].split('.')[0], searchParams.get('code'), searchParams.get('state')]) {
    assert.ok(secret.length > 3 && !written.includes(secret), `${secret} is in the audit log`);
  }
});

test('a profile from memory leaves no record, a refresh one with the ID of the request that needed it', async () => {
  const person = new Client();
  const id = idOf(await person.signIn(stack));
  await recorded('edge', of(id));
  await person.me(stack);
  const before = records('session').length + records('edge').length;
  for (let at = 0; at < 5; at += 1) assert.equal((await person.me(stack)).status, 200);
  await pause(600); // half of the token's lifetime, and a little: it counts as expired
  const refetched = await person.me(stack, '/api/auth/me?refetch=true');
  assert.equal(refetched.status, 200);
  const ofRefetch = of(idOf(refetched));
  const [refresh] = await recorded('session', (record) => record.event === 'token.refresh' && ofRefetch(record));
  assert.equal(refresh.result, 'refreshed');
  assert.ok(refresh['actor.subject']);
  await recorded('session', (record) => record['rpc.method']?.endsWith('/UpdateSession') && record.outcome === 'success' && ofRefetch(record));
  const since = records('session').concat(records('edge')).length - before;
  assert.equal(since, records('session').filter(ofRefetch).length, 'nothing else was recorded');
});

test('a sign-out and a logout at the provider name whose session ended, why, and by which request', async () => {
  const person = new Client();
  await person.signIn(stack);
  const id = idOf(await person.navigate(`${stack.edgeUrl}/api/auth/logout`));
  const [out] = await recorded('edge', of(id));
  assert.deepEqual([out.event, out.outcome, out['client.address']], ['sign_out', 'success', '127.0.0.1']);
  const ended = await recorded('session', of(id), 2);
  const end = ended.find((record) => record.event === 'session.end');
  assert.equal(end.cause, 'logout');
  assert.ok(end['actor.subject'] && end.session);

  const other = new Client();
  await other.signIn(stack);
  const page = await other.navigate(`${stack.issuer}/session/end`);
  const [, xsrf] = /name="xsrf" value="([^"]+)"/.exec(page.text);
  await other.navigate(`${stack.issuer}/session/end/confirm`, { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) });
  const [told] = await recorded('edge', (record) => record.event === 'provider_logout');
  assert.deepEqual([told.outcome, told.step, told.ended_count], ['success', 'logout_token', 1]);
  const byProvider = await recorded('session', (record) => record.event === 'session.end' && record.request_id === told.request_id);
  assert.equal(byProvider[0].cause, 'back_channel_logout');
  assert.equal((await other.me(stack)).status, 204);
});

test('what an operator reads and ends is recorded', async () => {
  const person = new Client();
  const { session } = (await recorded('edge', of(idOf(await person.signIn(stack)))))[0];
  const { sub } = (await person.me(stack)).json();
  const at = ['--service', stack.sessionUrls[0]];
  assert.equal(operator('sessions', 'list', '--subject', sub, ...at).status, 0);
  assert.equal(operator('sessions', 'end', '--handle', session, ...at).status, 0);
  const [end] = await recorded('session', (record) => record.event === 'session.end' && record.session === session);
  assert.equal(end.cause, 'operator');
  const by = (method) => (record) => record['rpc.method'] === `session.v1.SessionService/${method}`;
  const [list] = await recorded('session', by('ListSessions'));
  assert.equal(list['actor.subject'], end['actor.subject']);
});

test('a route file that changes is recorded, taken over or refused', async () => {
  const isRoutes = (outcome) => (record) => record.event === 'configuration.reload' && record.setting === 'EDGE_ROUTES' && record.outcome === outcome;
  await recorded('edge', isRoutes('success'));
  writeFileSync(join(folder, 'routes.toml'), 'nonsense = 1\n');
  const [refused] = await recorded('edge', isRoutes('failure'));
  assert.equal(refused.path, join(folder, 'routes.toml'));
  assert.ok(refused.error);
  writeFileSync(join(folder, 'routes.toml'), '# nothing\n');
  await recorded('edge', isRoutes('success'), 2);
});

test('a file that is moved away is continued under its name, and behind a killed process', async () => {
  const isStart = (record) => record.event === 'process.start';
  const starts = records('session').filter(isStart).length;
  await stack.restart('session', 'SIGKILL');
  await recorded('session', isStart, starts + 1);
  const moved = `${file('session')}.1`;
  renameSync(file('session'), moved);
  process.kill(stack.pid('session'), 'SIGHUP');
  await until(PATIENCE_MS, () => existsSync(file('session')), () => 'the file is not opened again');
  const id = idOf(await new Client().signIn(stack));
  await recorded('session', of(id), 2);
  assert.ok(linesOf(moved).every((line) => JSON.parse(line).request_id !== id));
  await stack.restart('session');
  const events = () => records('session').map(({ event }) => event);
  await until(PATIENCE_MS, () => events().includes('process.start'), () => events().join());
  assert.ok(events().indexOf('process.stop') < events().indexOf('process.start'));
});

test('records among the log are identified by their target', async (t) => {
  const among = await startStack({});
  t.after(() => among.stop());
  const person = new Client();
  const id = idOf(await person.signIn(among));
  const { sub } = (await person.me(among)).json();
  const found = (service) => among.logs(service).split('\n').filter((line) => line.startsWith('{"target":"audit",') && line.includes(id)).map((line) => JSON.parse(line));
  for (const [service, event] of [['edge', 'sign_in'], ['session', 'api.call']]) {
    await until(PATIENCE_MS, () => found(service).length > 0, () => among.logs(service));
    const record = found(service).at(-1);
    assert.deepEqual([record.event, record['actor.issuer'], record['actor.subject']], [event, among.issuer, sub]);
  }
});

test('with a full disk no request waits, readiness reports it, and with room again no record is lost', async (t) => {
  const disk = mkdtempSync(join(tmpdir(), 'vestibule-disk-'));
  const run = (command, ...args) => assert.equal(spawnSync(command, args).status, 0, `${command} ${args}: these tests need the right to mount a tmpfs`);
  run('mount', '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk);
  const full = await startStack({ edgeEnv: { EDGE_RATE_LIMIT_LOGIN: '0', AUDIT_LOG: join(disk, 'edge.log') }, sessionEnv: { AUDIT_LOG: 'off' } });
  t.after(async () => {
    await full.stop();
    run('umount', disk);
    rmSync(disk, { recursive: true });
  });
  const ballast = join(disk, 'ballast');
  spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k']);
  const condition = async () => (await probe(`${full.adminUrls.edge}/readyz`)).body;
  const metrics = async () => (await probe(`${full.adminUrls.edge}/metrics`)).body;
  const signIns = [];
  await until(PATIENCE_MS, async () => {
    const person = new Client();
    const page = await person.navigate(await person.authorize(full));
    assert.equal(page.status, 302);
    signIns.push(idOf(page));
    return /audit_write_failures_total\S* [1-9]/.test(await metrics());
  }, () => 'the disk never refused');
  await new Client().signIn(full);
  assert.equal((await probe(`${full.adminUrls.edge}/readyz`)).status, 200, 'it stays in service');
  assert.match(await condition(), /records cannot be written/);
  await until(PATIENCE_MS, () => full.logs('edge').includes('audit records cannot be written'), () => full.logs('edge'));
  rmSync(ballast);
  const written = () => linesOf(join(disk, 'edge.log')).map((line) => JSON.parse(line));
  await until(PATIENCE_MS, async () => !(await condition()).includes('records cannot be written'), condition);
  const missing = () => {
    const ids = new Set(written().map((record) => record.request_id));
    return signIns.filter((id) => !ids.has(id));
  };
  await until(PATIENCE_MS, () => missing().length === 0, () => `${missing()} were lost`);
  assert.match(await metrics(), /audit_records_lost_total\S* 0\n/);
});
