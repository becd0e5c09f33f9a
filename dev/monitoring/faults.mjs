// Real faults of a real stack, the alerts each raises, and the remedy its runbook names. Windows are shortened to seconds.
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { issue } from '../lib/authority.mjs';
import { pause, probe, until } from '../lib/net.mjs';
import { binary } from '../stack.mjs';
import { Client, request } from '../tests/product/client.mjs';
import { SCRIPT } from './people.mjs';

const FLOOD = 40;
const PAUSE_MS = 600;
const NEARLY_ALL = 0.88;
const FILES = 1024;
const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
const FEW_HOURS = 5;
const FLIGHT_MS = 20_000; // within which somebody's token is due
const DUE_MS = 3500; // half of accessTokenTtl, and a little
const AT_ONCE = 8;
const BROWSER = 'x'.repeat(256); // as much of a browser's name as a record keeps

/** Seconds for which a refresh is one replica's, in this stack. */
export const LEASE_S = 2;

/** Does something again and again until told to stop. */
function repeated(work) {
  let isOver = false;
  const done = (async () => { while (!isOver) await work().catch(() => {}); })();
  return () => { isOver = true; return done; };
}

/** The program with another version in it, as many bytes long: what is built of another commit differs in more, and in nothing that is looked at here. */
function ofAnotherVersion(name, folder) {
  const path = join(folder, name);
  const text = readFileSync(binary(name), 'latin1').replaceAll('0.1.0', '0.1.1');
  writeFileSync(path, text, { encoding: 'latin1', mode: 0o755 });
  return path;
}

/** The faults, in an order in which each leaves the stack as it was. */
export function faults({ stack, stateDir, redisPort, application, authority, auditDisk }) {
  const redis = (...args) => execFileSync('redis-cli', ['-p', String(redisPort), ...args], { encoding: 'utf8' });
  const edges = Object.keys(stack.adminUrls).filter((name) => name.startsWith('edge'));
  const services = Object.keys(stack.adminUrls).filter((name) => name.startsWith('session'));
  const each = (names, work) => Promise.all(names.map(work));
  const openFiles = (most) => execFileSync('prlimit', ['--pid', String(stack.pid('edge')), `--nofile=${most}:`]);
  const secret = join(stateDir, 'client-secret');
  const known = readFileSync(secret, 'utf8');
  const ballast = join(auditDisk, 'ballast');
  const hoursLeft = (hours) => issue(authority, join(stateDir, 'session-tls'), ['127.0.0.1'], ['serverAuth'], { from: new Date(Date.now() - (DAY_HOURS - hours) * HOUR_MS), until: new Date(Date.now() + hours * HOUR_MS) });
  const signal = (name, word) => process.kill(stack.pid(name), word);
  const waits = async (name) => /^session_refresh_waiting [1-9]/m.test((await probe(`${stack.adminUrls[name]}/metrics`)).body);
  const waiting = async () => (await Promise.all(services.map(waits))).includes(true);
  /** Does something while a refresh is on its way to the provider, which stands still meanwhile. */
  const inFlight = async (work) => {
    signal('idp', 'SIGSTOP');
    try {
      await until(FLIGHT_MS, waiting, () => 'nobody needs a token');
      await work();
    } finally {
      signal('idp', 'SIGCONT');
    }
  };
  let turn = 0;
  /** Somebody's token is refreshed by two replicas, since the one that began stands still for longer than it may. */
  const overtaken = async () => {
    const [person, name] = [new Client(), services[turn++ % services.length]];
    await person.signIn(stack);
    await pause(DUE_MS);
    const answers = [];
    await inFlight(async () => {
      for (let at = 0; at < AT_ONCE; at += 1) answers.push(person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: SCRIPT }).catch(() => {}));
      await pause(PAUSE_MS);
      signal(name, 'SIGSTOP');
    });
    await pause(2000 * LEASE_S);
    signal(name, 'SIGCONT');
    await Promise.all(answers);
  };
  let stop;
  return [
    { fault: 'an application is gone', alerts: ['UpstreamUnreachable'], begin: () => application.leave(), remedy: () => application.comeBack() },
    { fault: 'an application is slow', alerts: ['Slow'], begin: () => application.delay(1500), remedy: () => application.delay(0) },
    {
      fault: 'more requests than there may be', alerts: ['LimitsHit'],
      begin: () => { stop = repeated(() => Promise.all(Array.from({ length: FLOOD }, (_, at) => request(`${stack.edgeUrl}/slow/${at}`, { headers: { 'x-forwarded-for': `198.51.100.${at + 1}` } })))); },
      remedy: () => stop(),
    },
    {
      fault: 'logout tokens that are worth nothing', alerts: ['LogoutTokensRefused'],
      begin: () => { stop = repeated(async () => { await request(`${stack.edgeUrl}/api/auth/backchannel-logout`, { method: 'POST', body: new URLSearchParams({ logout_token: 'nothing' }) }); await pause(200); }); },
      remedy: () => stop(),
    },
    {
      fault: 'the store stands still now and then', alerts: ['StoreSlow'],
      begin: () => { stop = repeated(async () => { redis('client', 'pause', String(PAUSE_MS)); await pause(2 * PAUSE_MS); }); },
      remedy: () => stop(),
    },
    { fault: 'the store is full', alerts: ['StoreFull'], begin: () => redis('config', 'set', 'maxmemory', '1'), remedy: () => redis('config', 'set', 'maxmemory', '0') },
    {
      fault: 'the store is gone',
      alerts: ['SessionCallsFail', 'Errors', 'SignInUnavailable', 'ReplicaUnheard', ...['SignIn', 'Requests', 'Ending'].flatMap((one) => [`${one}BurnsFast`, `${one}BurnsSlow`])],
      begin: () => stack.kill('redis', 'SIGKILL'), remedy: () => stack.start('redis'),
    },
    { fault: 'the provider is gone', alerts: ['ProviderUnreachable', 'RevocationsFail', 'RefreshBurnsFast', 'RefreshBurnsSlow'], begin: () => stack.kill('idp', 'SIGKILL'), remedy: () => stack.start('idp') },
    { fault: 'the client secret is another one', alerts: ['RefreshRejected', 'SignInMisconfigured'], begin: () => writeFileSync(secret, 'another-secret-that-the-provider-does-not-know\n'), remedy: () => writeFileSync(secret, known) },
    {
      fault: 'a process may open no more files', alerts: ['OpenFilesRunOut'],
      begin: () => openFiles(Math.ceil(readdirSync(`/proc/${stack.pid('edge')}/fd`).length / NEARLY_ALL)), remedy: () => openFiles(FILES),
    },
    { fault: 'a certificate is not renewed', alerts: ['CertificateExpires'], begin: () => hoursLeft(FEW_HOURS), remedy: () => hoursLeft(DAY_HOURS) },
    {
      fault: 'nobody reads what a process writes', alerts: ['LogRecordsDropped'],
      begin: () => {
        stack.read('edge', false);
        stop = repeated(() => Promise.all(Array.from({ length: FLOOD }, (_, at) => request(`${stack.edgeUrls[0]}/shop/${at}`, { headers: { 'user-agent': BROWSER } }))));
      },
      remedy: () => { stack.read('edge', true); return stop(); },
    },
    { fault: 'the disk of the audit log is full', alerts: ['AuditLogStands'], begin: () => spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k']), remedy: () => rmSync(ballast) },
    {
      fault: 'the store fills up within a refresh', alerts: ['RefreshUnsaved'],
      begin: () => inFlight(() => redis('config', 'set', 'maxmemory', '1')), remedy: () => redis('config', 'set', 'maxmemory', '0'),
    },
    { fault: 'a process stands still within a refresh', alerts: ['RefreshSuperseded'], begin: () => { stop = repeated(overtaken); }, remedy: () => stop() },
    {
      fault: 'a rollout stands still', alerts: ['VersionsMixed'],
      begin: async () => { await stack.kill('session-2'); await stack.start('session-2', ofAnotherVersion('session-svc', stateDir)); }, remedy: () => stack.restart('session-2'),
    },
    { fault: 'every session service is gone', alerts: ['SessionServiceDown', 'PodUnreadable'], begin: () => each(services, (name) => stack.kill(name, 'SIGKILL')), remedy: () => each(services, (name) => stack.start(name)) },
    { fault: 'every edge is gone', alerts: ['EdgeDown'], begin: () => each(edges, (name) => stack.kill(name, 'SIGKILL')), remedy: () => each(edges, (name) => stack.start(name)) },
  ].map((one) => ({ ...one, alerts: one.alerts.map((name) => `Vestibule${name}`) }));
}
