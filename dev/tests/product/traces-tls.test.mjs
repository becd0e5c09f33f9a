// Traces over TLS to a collector with a system or a named authority, with or without a client certificate.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { after, test } from 'node:test';

import { issue, makeAuthority } from '../../lib/authority.mjs';
import { until } from '../../lib/net.mjs';
import { binary, startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { startCollector } from './grpc.mjs';

const PATIENCE_MS = 20_000;
const folder = mkdtempSync(join(tmpdir(), 'vestibule-traces-'));
after(() => rmSync(folder, { recursive: true }));
const made = (name) => {
  const authority = makeAuthority(join(folder, `${name}-authority`));
  issue(authority, join(folder, name), ['127.0.0.1'], ['serverAuth', 'clientAuth']);
  return { authority: authority.certificate, certificate: join(folder, name, 'tls.crt'), key: join(folder, name, 'tls.key') };
};
const [server, own, stranger] = ['server', 'own', 'stranger'].map(made);
const shown = { cert: readFileSync(server.certificate), key: readFileSync(server.key) };
const AUTHORITY = { OTEL_EXPORTER_OTLP_CERTIFICATE: server.authority };
const IDENTITY = { OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: own.certificate, OTEL_EXPORTER_OTLP_CLIENT_KEY: own.key };

/** A stack whose services send traces to this collector, after a sign-in. */
async function signedIn(t, collector, trust) {
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100', ...trust };
  const stack = await startStack({ store: 'memory:', edgeEnv: settings, sessionEnv: settings });
  t.after(() => stack.stop());
  const person = new Client();
  await person.navigate(await person.authorize(stack, { login: '/api/auth/login' }));
  return stack;
}

const arrive = (collector, service) => until(PATIENCE_MS, () => collector.bytes().includes(service), () => `no traces of ${service} arrive`);

for (const [what, trust] of Object.entries({
  'of the authority that is named': AUTHORITY,
  'of one of the system\'s authorities': { SSL_CERT_FILE: server.authority },
})) {
  test(`traces reach a collector ${what}`, async (t) => {
    const collector = await startCollector(shown);
    t.after(() => collector.stop());
    await signedIn(t, collector, trust);
    for (const service of ['auth-edge', 'session-svc']) await arrive(collector, service);
  });
}

test('a collector that asks is shown a certificate', async (t) => {
  const asking = { ...shown, requestCert: true, rejectUnauthorized: true, ca: readFileSync(own.authority) };
  const collector = await startCollector(asking);
  t.after(() => collector.stop());
  await signedIn(t, collector, { ...AUTHORITY, ...IDENTITY });
  await arrive(collector, 'session-svc');
});

test('a collector of another authority gets nothing, and no request waits for it', async (t) => {
  const collector = await startCollector(shown);
  t.after(() => collector.stop());
  const stack = await signedIn(t, collector, { OTEL_EXPORTER_OTLP_CERTIFICATE: stranger.authority });
  await stack.stop(); // retries unsent traces once
  assert.equal(collector.bytes().length, 0);
});

const PROVIDER = { OIDC_ISSUER_URL: 'https://issuer.example', OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: 'a-secret-long-enough-for-everyone' };
const PROGRAMS = {
  'auth-edge': { ...PROVIDER, EDGE_BASE_URL: 'https://app.example', EDGE_SECRET: 'another-secret-long-enough-for-all' },
  'session-svc': { ...PROVIDER, SESSION_STORE: 'memory:' },
};
for (const [program, settings] of Object.entries(PROGRAMS)) {
  test(`${program} --check-config says what keeps traces from a collector`, () => {
    const check = (env) => {
      const { status, stdout, stderr } = spawnSync(binary(program), ['--check-config'], { env: { ...settings, ...env }, encoding: 'utf8' });
      return [status, stdout + stderr];
    };
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector:4317' };
    assert.deepEqual(check({ ...endpoint, ...AUTHORITY, ...IDENTITY }), [0, 'configuration ok\n']);
    const missing = join(folder, 'missing.pem');
    const [empty, none] = [join(folder, 'empty'), join(folder, 'none.pem')];
    mkdirSync(empty, { recursive: true });
    writeFileSync(none, '');
    for (const [change, name, said] of [
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }, 'ENDPOINT', 'https://'],
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://collector:4317' }, 'ENDPOINT', 'https://'],
      [{ OTEL_EXPORTER_OTLP_CERTIFICATE: missing }, 'CERTIFICATE', missing],
      [{ OTEL_EXPORTER_OTLP_CERTIFICATE: server.key }, 'CERTIFICATE', 'no certificate'],
      [{ ...IDENTITY, OTEL_EXPORTER_OTLP_CLIENT_KEY: '' }, 'CLIENT_KEY', 'is required'],
      [{ ...IDENTITY, OTEL_EXPORTER_OTLP_CLIENT_KEY: server.key }, 'CLIENT_KEY', 'does not belong'],
      [{ SSL_CERT_FILE: none }, 'ENDPOINT', 'no authorities'],
      [{ SSL_CERT_DIR: empty }, 'ENDPOINT', 'no authorities'],
    ]) {
      const [status, text] = check({ ...endpoint, ...change });
      assert.equal(status, 78, text);
      assert.ok(text.includes(`OTEL_EXPORTER_OTLP_${name}: `) && text.includes(said), text);
    }
  });
}
