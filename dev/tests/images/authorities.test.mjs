// The authorities in the image are those the session service trusts where its store's address names none (`rediss://` without ca_file).
// Redis here has a certificate of an authority made for the test: trusted when it is put in the place of the image's, and else not.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { imageName } from '../../images/names.mjs';
import { buildRedisImage } from '../../images/redis.mjs';
import { podmanEnvironment } from '../../lib/containers.mjs';
import { until } from '../../lib/net.mjs';

const START_MS = 20_000;
const env = podmanEnvironment();
const podman = (...args) => spawnSync('podman', args, { env, encoding: 'utf8' });
const folder = mkdtempSync(join(tmpdir(), 'vestibule-authorities-'));
const openssl = (...args) => execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', ...args], { cwd: folder, stdio: 'pipe' });
let redis;

before(async () => {
  openssl('-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.crt');
  openssl('-subj', '/CN=localhost', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', 'tls.key', '-out', 'tls.crt');
  writeFileSync(join(folder, 'key'), randomBytes(32).toString('hex'));
  for (const [path, mode] of [['', 0o755], ['key', 0o444], ['tls.key', 0o444]]) chmodSync(join(folder, path), mode);
  const tls = ['--port', '0', '--tls-port', '6379', '--tls-auth-clients', 'no', '--tls-cert-file', '/tls/tls.crt', '--tls-key-file', '/tls/tls.key', '--tls-ca-cert-file', '/tls/ca.crt'];
  const started = podman('run', '--detach', '--rm', '--network=none', `--volume=${folder}:/tls:ro`, await buildRedisImage(), 'redis-server', ...tls);
  assert.equal(started.status, 0, started.stderr);
  redis = started.stdout.trim();
  await until(START_MS, () => podman('logs', redis).stdout.includes('Ready to accept connections'), () => podman('logs', redis).stdout);
});
after(() => {
  podman('rm', '--force', '--time=0', redis);
  rmSync(folder, { recursive: true, force: true });
});

/** What the operator's tool says of the store. */
function checkStore(flags = []) {
  const settings = {
    OIDC_ISSUER_URL: 'https://login.example', OIDC_CLIENT_ID: 'x', OIDC_CLIENT_SECRET_FILE: '/tls/key', SESSION_ENCRYPTION_KEY_FILE: '/tls/key', SESSION_STORE: 'rediss://127.0.0.1:6379',
  };
  const { status, stdout, stderr } = podman('run', '--rm', '--read-only', `--network=container:${redis}`, `--volume=${folder}:/tls:ro`, ...flags, ...Object.entries(settings).map(([name, value]) => `--env=${name}=${value}`), imageName('session-svc'), 'check-store');
  return { status, told: stdout + stderr };
}

test('an authority among those of the image is trusted', () => {
  const { told } = checkStore([`--volume=${join(folder, 'ca.crt')}:/etc/ssl/certs/ca-certificates.crt:ro`]);
  assert.doesNotMatch(told, /cannot be reached/);
  assert.match(told, /redis/i);
});

test('another is not', () => {
  const { status, told } = checkStore();
  assert.notEqual(status, 0);
  assert.match(told, /cannot be reached: .*UnknownIssuer/);
});
