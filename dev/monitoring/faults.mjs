// Real faults of a real stack, the alerts each raises, and the remedy its runbook names. Windows are shortened to seconds.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { pause } from '../lib/net.mjs';
import { request } from '../tests/product/client.mjs';

const FLOOD = 40;
const PAUSE_MS = 600;
const NEARLY_ALL = 0.88;
const FILES = 1024;

/** Alerts that no fault here raises, and why. */
export const NOT_RAISED = {
  VestibuleCertificateExpires: 'the metric is cert-manager\'s',
  VestibuleVersionsMixed: 'there is one version of the programs',
  VestibuleLogRecordsDropped: 'takes a reader of standard output that stops',
  VestibuleAuditLogStands: 'takes a disk of the audit log that is full',
  VestibuleRefreshUnsaved: 'takes a store that fills up within one refresh (session-svc/tests/service/refresh/outages.rs)',
  VestibuleRefreshSuperseded: 'takes a process that stands still for longer than a lease (session-svc/tests/service/refresh/fencing.rs)',
};

/** Does something again and again until told to stop. */
function repeated(work) {
  let isOver = false;
  const done = (async () => { while (!isOver) await work().catch(() => {}); })();
  return () => { isOver = true; return done; };
}

/** The faults, in an order in which each leaves the stack as it was. */
export function faults({ stack, stateDir, redisPort, application }) {
  const redis = (...args) => execFileSync('redis-cli', ['-p', String(redisPort), ...args], { encoding: 'utf8' });
  const edges = Object.keys(stack.adminUrls).filter((name) => name.startsWith('edge'));
  const services = Object.keys(stack.adminUrls).filter((name) => name.startsWith('session'));
  const each = (names, work) => Promise.all(names.map(work));
  const openFiles = (most) => execFileSync('prlimit', ['--pid', String(stack.pid('edge')), `--nofile=${most}:`]);
  const secret = join(stateDir, 'client-secret');
  const known = readFileSync(secret, 'utf8');
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
    { fault: 'every session service is gone', alerts: ['SessionServiceDown', 'PodUnreadable'], begin: () => each(services, (name) => stack.kill(name, 'SIGKILL')), remedy: () => each(services, (name) => stack.start(name)) },
    { fault: 'every edge is gone', alerts: ['EdgeDown'], begin: () => each(edges, (name) => stack.kill(name, 'SIGKILL')), remedy: () => each(edges, (name) => stack.start(name)) },
  ].map((one) => ({ ...one, alerts: one.alerts.map((name) => `Vestibule${name}`) }));
}
