// A real Prometheus scrapes both programs after people have signed in, waited for refreshes and left. Every metric
// matches dev/monitoring/metrics.yaml, and the dashboard's queries and the rules find their series. No value that
// a client sends becomes a label.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { until } from '../../lib/net.mjs';
import { startPrometheus, targetsOf } from '../../lib/prometheus.mjs';
import { objectiveRules } from '../../monitoring/objectives.mjs';
import { asked, monitoring } from '../../monitoring/source.mjs';
import { startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';

const SCRIPT = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
const OURS = new Set(['__name__', 'job', 'instance', 'namespace', 'pod', 'le']);
const JOBS = { 'vestibule-edge': 'edge', 'vestibule-session-svc': 'service' };
const WAIT_MS = 30_000;
const BODY_MAX = 1024;
const folder = mkdtempSync(join(tmpdir(), 'vestibule-metrics-'));
let source;
let upstream;
let stack;
let prometheus;

before(async () => {
  source = await monitoring();
  upstream = http.createServer((_, response) => response.end('shop'));
  await new Promise((listening) => upstream.listen(0, '127.0.0.1', listening));
  const at = `http://127.0.0.1:${upstream.address().port}`;
  const routes = join(folder, 'routes.toml');
  writeFileSync(routes, [
    ...['[[route]]', 'path = "/shop/*"', 'guard = "api"', `max_body = ${BODY_MAX}`, `upstream = "${at}"`],
    ...['[[route]]', 'path = "/open/*"', 'guard = "none"', `upstream = "${at}"`],
    ...['[[route]]', 'path = "/machines/*"', 'guard = "api"', `upstream = "${at}"`, '[route.bearer]', 'audience = "https://shop.example.test/"'],
  ].join('\n'));
  stack = await startStack({ routes, accessTokenTtl: 2, edgeEnv: { EDGE_ACCESS_TOKEN_ENDPOINT: 'true', EDGE_RATE_LIMIT_LOGIN: '0' } });
  const groups = objectiveRules(source).spec.groups.map((group) => ({ ...group, interval: '1s' }));
  prometheus = await startPrometheus({ targets: targetsOf(stack), groups });
  await walk();
});
after(async () => {
  await prometheus?.stop();
  await stack?.stop();
  upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A typical day: sign in, use applications, have tokens refreshed, be denied, sign out. */
async function walk() {
  const person = new Client();
  await person.signIn(stack);
  assert.equal((await person.me(stack)).status, 200);
  assert.equal((await person.fetch(`${stack.edgeUrl}/shop/1`)).status, 200);
  const token = async () => (await person.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: SCRIPT })).json().access_token;
  const first = await token();
  await until(WAIT_MS, async () => (await token()) !== first, () => 'the token is never refreshed');
  const large = await person.fetch(`${stack.edgeUrl}/shop/1`, { method: 'POST', headers: SCRIPT, body: 'x'.repeat(2 * BODY_MAX) });
  assert.equal(large.status, 413);
  const machine = await request(`${stack.edgeUrl}/machines/1`, { headers: { authorization: 'Bearer nothing' } });
  assert.equal(machine.status, 401);
  const refused = await new Client().navigate(`${stack.edgeUrl}/api/auth/callback?state=unknown&code=unknown`);
  assert.equal(refused.status, 400);
  const left = await person.fetch(`${stack.edgeUrl}/api/auth/logout`, { method: 'POST', headers: SCRIPT });
  assert.ok(left.status < 400, left.text);
}

const everything = () => prometheus.series('{job=~"vestibule-.+"}');
const identity = (labels) => JSON.stringify(Object.entries(labels).filter(([name]) => name !== 'instance').sort());

/** The metric of a series: the parts of a histogram have separate names. */
function metricOf({ __name__: name }) {
  return source.metrics.find((metric) => metric.name === name || (metric.type === 'histogram' && name.startsWith(`${metric.name}_`)));
}

test('every metric of the file is there, of its type, of the programs that have it, with these labels and these values alone', async () => {
  const told = source.metrics.filter(({ rare }) => !rare);
  const complete = async () => {
    const names = new Set((await everything()).map((labels) => metricOf(labels)?.name));
    return told.every(({ name }) => names.has(name));
  };
  const missing = async () => {
    const names = new Set((await everything()).map((labels) => metricOf(labels)?.name));
    return told.filter(({ name }) => !names.has(name)).map(({ name }) => name);
  };
  await until(WAIT_MS, complete, () => 'some metric is not there').catch(async (late) => assert.fail(`${late.message}: ${await missing()}`));
  const [series, metadata] = [await everything(), await prometheus.metadata()];
  for (const metric of told) {
    const its = series.filter((labels) => metricOf(labels) === metric);
    assert.deepEqual([...new Set(its.map(({ job }) => JOBS[job]))].sort(), [...metric.of].sort(), metric.name);
    assert.equal(metadata[metric.name][0].type, metric.type, metric.name);
  }
  for (const labels of series) {
    const metric = metricOf(labels);
    if (!metric) continue;
    const own = Object.fromEntries(Object.entries(labels).filter(([name]) => !OURS.has(name)));
    const values = metric.labels ?? {};
    // Prometheus treats an empty label as a missing one.
    for (const name of Object.keys(values)) if (!(name in own) && values[name].like && new RegExp(values[name].like).test('')) own[name] = '';
    assert.deepEqual(Object.keys(own).sort(), Object.keys(values).sort(), labels.__name__);
    for (const [name, value] of Object.entries(own)) {
      const allowed = Array.isArray(values[name]) ? values[name].includes(value) : new RegExp(values[name].like).test(value);
      assert.ok(allowed, `${labels.__name__}{${name}="${value}"}`);
    }
  }
});

test('every metric that is exported is in the file', async () => {
  const ofPrometheus = /^(up|scrape_.+)$/;
  const unknown = (await everything()).filter((labels) => !metricOf(labels) && !ofPrometheus.test(labels.__name__));
  assert.deepEqual([...new Set(unknown.map(({ __name__ }) => __name__))], []);
});

test('what people did is counted, once', async () => {
  const expected = {
    'logins_total{result="success", provider="default"}': 1,
    'sign_in_refusals_total{step="callback", reason="unknown_transaction", provider="default"}': 1,
    'access_tokens_total{outcome="opaque"}': 1,
    'sessions_created_total': 1,
    'sessions_ended_total{cause="logout"}': 1,
    'sessions_ended_total{cause="other_device"}': 0,
    'session_revocations_total{outcome="done"}': 1,
    'upstream_request_duration_seconds_count{http_route="/shop/*", outcome="2xx"}': 1,
    'limit_hits_total{limit="body_bytes"}': 1,
    'limit_hits_total{job="vestibule-edge", limit="requests"}': 0,
    'session_service_replicas{state="heard"}': 1,
    'session_watches{scope="all"}': 1,
    'session_store_full': 0,
  };
  for (const [series, count] of Object.entries(expected)) {
    const [sample] = await prometheus.ask(`sum(${series})`);
    assert.equal(Number(sample?.value[1]), count, series);
  }
  const [refreshed] = await prometheus.ask('sum(session_refreshes_total{outcome="refreshed"})');
  const [granted] = await prometheus.ask('sum(session_refresh_provider_duration_seconds_count)');
  assert.ok(Number(refreshed.value[1]) >= 1);
  assert.equal(refreshed.value[1], granted.value[1]);
});

test('every query of the dashboard gives a result, or asks for what there is and did not happen', async () => {
  const there = new Set((await everything()).map((labels) => metricOf(labels)?.name));
  for (const { title, queries } of source.rows.flatMap((row) => row.panels)) {
    for (const { ask } of queries) {
      const query = ask.replaceAll('$namespace', 'vestibule');
      const names = asked(ask, source.metrics);
      const found = async () => (await prometheus.ask(query)).length > 0;
      const isQuiet = /!="ok"|> 0$/.test(ask) || names.some((name) => !there.has(name));
      if (isQuiet) {
        await prometheus.ask(query);
        assert.ok(names.length > 0, `${title}: ${ask}`);
      } else {
        await until(WAIT_MS, found, () => `${title}: nothing for ${query}`);
      }
    }
  }
});

test('Prometheus takes every alert, and none is raised by people who come and go', async () => {
  for (const { alert, expr } of source.alerts) {
    // No series here belongs to cert-manager, and no other job asks for a pod.
    const found = await prometheus.ask(expr);
    assert.ok(Array.isArray(found), alert);
  }
  const raised = await prometheus.alerts();
  assert.deepEqual(raised.map(({ labels }) => labels.alertname), []);
});

test('nothing a client sends becomes a label: other requests of the same kinds make no new series', async () => {
  const word = () => randomBytes(6).toString('hex');
  const hostile = async () => {
    const person = new Client();
    const odd = { 'x-forwarded-for': `198.51.100.${randomBytes(1)[0]}`, 'x-request-id': word(), forwarded: `for=${word()}`, 'user-agent': word(), traceparent: word() };
    const send = (path, init = {}) => person.fetch(`${stack.edgeUrl}${path}`, { ...init, headers: { ...odd, ...init.headers } });
    for (const path of ['/', '/open/', '/shop/', '/machines/', '/api/auth/', '/api/']) {
      for (const method of ['GET', word().toUpperCase().replaceAll(/\d/g, 'X')]) await send(`${path}${word()}?${word()}=${word()}`, { method });
      await send(`${path}${word()}`, { headers: { cookie: `${word()}=${word()}`, host: `${word()}.example.test` } });
    }
    for (const query of [`connection=${word()}`, `iss=https://${word()}.example.test`, `return_to=/${word()}`]) await person.navigate(`${stack.edgeUrl}/api/auth/login?${query}`, { headers: odd });
    await person.navigate(`${stack.edgeUrl}/api/auth/callback?state=${word()}&error=${word()}&iss=${word()}`, { headers: odd });
    await send('/api/auth/backchannel-logout', { method: 'POST', body: new URLSearchParams({ logout_token: word() }) });
    await send(`/machines/${word()}`, { headers: { authorization: `Bearer ${word()}` } });
    await send('/api/auth/me', { headers: { cookie: `__Host-session=${word()}` } });
    await send('/session.v1.BrowserSessionService/' + word(), { method: 'POST', headers: { 'content-type': 'application/grpc-web+proto', ...SCRIPT } });
  };
  const requests = async () => Number((await prometheus.ask('sum(http_server_request_duration_seconds_count)'))[0].value[1]);
  const settled = async (least) => {
    await until(WAIT_MS, async () => (await requests()) >= least, () => 'the requests are not scraped');
    return (await everything()).map(identity);
  };
  const round = async () => {
    const text = await (await fetch(`${stack.adminUrls.edge}/metrics`)).text();
    const counted = [...text.matchAll(/^http_server_request_duration_seconds_count\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
    return counted;
  };
  await hostile();
  const known = new Set(await settled(await round()));
  for (let again = 0; again < 3; again += 1) await hostile();
  const late = (await settled(await round())).filter((series) => !known.has(series));
  assert.deepEqual(late, []);
});
