// One real session service, a provider that refuses to refresh, and an API, each on a free port of loopback.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { binary } from '../../stack.mjs';

const READY_MS = 30_000;

/** An HTTP server on a free port: `{url, stop}`. */
export async function serve(handler) {
  const server = http.createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }),
  };
}

/** A provider whose token endpoint refuses every grant. */
export function startProvider() {
  return serve((request, response) => {
    const issuer = `http://${request.headers.host}`;
    const answers = {
      '/.well-known/openid-configuration': [200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      }],
      '/jwks': [200, { keys: [] }],
      '/token': [400, { error: 'invalid_grant' }],
    };
    const [status, body] = answers[request.url] ?? [404, {}];
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
}

/** A certificate authority in `folder`, with a certificate for a server on loopback and one for a client. */
export function makeCertificates(folder) {
  const at = (name) => join(folder, name);
  const make = (name, ...more) => execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
    '-subj', `/CN=${name}`, '-keyout', at(`${name}.key`), '-out', at(`${name}.pem`), ...more,
  ], { stdio: 'ignore' });
  make('ca');
  const leaf = ['-addext', 'basicConstraints=critical,CA:FALSE', '-CA', at('ca.pem'), '-CAkey', at('ca.key')];
  make('server', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', ...leaf);
  make('orders', '-addext', 'subjectAltName=DNS:orders.shop.internal', ...leaf);
  return at;
}

/** A session service: `url`, `kill()` outright, `start()` again, `stop()`. */
export async function startService(issuer, store, settings = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-examples-'));
  const [port, admin] = [await freePort(), await freePort()];
  const env = {
    SESSION_LISTEN: `127.0.0.1:${port}`,
    SESSION_ADMIN_LISTEN: `127.0.0.1:${admin}`,
    SESSION_STORE: store === 'file:' ? `file:${join(folder, 'sessions.redb')}` : store,
    SESSION_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
    SESSION_MAX_PER_SUBJECT: '0', // the tests for paging need more sessions than one person usually has
    OIDC_ISSUER_URL: issuer,
    OIDC_CLIENT_ID: 'vestibule',
    OIDC_CLIENT_SECRET: randomBytes(16).toString('hex'),
    ...settings,
  };
  let child;
  const host = settings.SESSION_TLS_CERT_FILE ? 'localhost' : '127.0.0.1';
  const service = {
    url: `${settings.SESSION_TLS_CERT_FILE ? 'https' : 'http'}://${host}:${port}`,
    address: `${host}:${port}`,
    async start() {
      child = new Child('session', binary('session-svc'), [], { env });
      await until(READY_MS, async () => (await probe(`http://127.0.0.1:${admin}/readyz`)).status === 200, () => `not ready:\n${child.tail()}`);
    },
    kill: () => child.stop('SIGKILL'),
    async stop() {
      await child.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await service.start();
  return service;
}
