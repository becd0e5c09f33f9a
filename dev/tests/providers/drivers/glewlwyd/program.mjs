// Debian's glewlwyd (C), configured by its own JSON API over sqlite.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Child } from '../../../../lib/child.mjs';
import { freePort, probe, until } from '../../../../lib/net.mjs';
import { Client } from '../../../product/client.mjs';

const SCHEMA = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';
const ADMIN = { username: 'admin', password: 'password' }; // from Debian's schema; on loopback, for the duration of a test
export const ADA = { username: 'ada', password: 'analytical-engine', name: 'Ada Lovelace', email: 'ada@example.test' };
export const CLIENT = { id: 'vestibule', secret: 'a-secret-of-the-client-that-is-long-enough' };

const configuration = (port, folder) => `
port=${port}
bind_address="127.0.0.1"
external_url="http://127.0.0.1:${port}"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="WARNING"
cookie_domain="127.0.0.1"
cookie_secure=0
session_expiration=3600
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA512"
database = { type = "sqlite3" path = "${folder}/glewlwyd.db" };
`;

/** A key whose first coordinate starts with a zero byte, which Glewlwyd omits from its key set: one key in 256. */
function keyWithAZeroInFront() {
  for (;;) {
    // Encodes the key during generation: exporting a key object can deadlock with the garbage collector (node 20).
    const { privateKey, publicKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256', privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'der' },
    });
    if (publicKey.at(-64) === 0) return { privateKey, publicKey: createPublicKey({ key: publicKey, type: 'spki', format: 'der' }) };
  }
}

function plugin(issuer, accessTokenSecs) {
  const { privateKey, publicKey } = keyWithAZeroInFront();
  return {
    module: 'oidc', name: 'oidc', display_name: 'OpenID Connect', enabled: true,
    parameters: {
      iss: issuer, 'jwt-type': 'ecdsa', 'jwt-key-size': '256',
      key: privateKey,
      cert: publicKey.export({ type: 'spki', format: 'pem' }),
      'access-token-duration': accessTokenSecs, 'refresh-token-duration': 86_400, 'code-duration': 60, 'refresh-token-rolling': true, 'allow-non-oidc': false,
      'auth-type-code-enabled': true, 'auth-type-token-enabled': false, 'auth-type-id-token-enabled': true, 'auth-type-none-enabled': false,
      'auth-type-password-enabled': false, 'auth-type-client-enabled': false, 'auth-type-device-enabled': false, 'auth-type-refresh-enabled': true,
      'pkce-allowed': true, 'pkce-method-plain-allowed': false, 'pkce-required': true,
      'session-cookie-name': 'GLEWLWYD2_OIDC_SID', 'session-cookie-expiration': 3600,
      'jwks-show': true, 'request-parameter-allow': true, 'secret-type': 'public', 'address-claim': { type: 'no' }, 'scope-claim': 'no',
      'name-claim': 'on-demand', 'name-claim-scope': ['profile'], 'email-claim': 'on-demand', 'email-claim-scope': ['email'],
      'oauth-par-allowed': true, 'oauth-par-required': false, 'oauth-par-request_uri-prefix': 'urn:ietf:params:oauth:request_uri:', 'oauth-par-duration': 90,
      'session-management-allowed': true, 'front-channel-logout-allowed': true, 'back-channel-logout-allowed': true,
    },
  };
}

/** Starts it with one person and one client, whose edge is at `edgeUrl`: {issuer, origin, rotateKeys, log, stop}. */
export async function startGlewlwyd({ edgeUrl, accessTokenSecs, postLogoutRedirectUri = `${edgeUrl}/` }) {
  const route = (action) => `${edgeUrl}/api/auth/${action}`;
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-glewlwyd-'));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const issuer = `${origin}/api/oidc/`;
  const made = spawnSync('python3', ['-c', 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read())', join(folder, 'glewlwyd.db'), SCHEMA], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
  writeFileSync(join(folder, 'glewlwyd.conf'), configuration(port, folder));
  const child = new Child('glewlwyd', 'glewlwyd', [`--config-file=${join(folder, 'glewlwyd.conf')}`]);
  const admin = new Client();
  const rotateKeys = async () => {
    await send(admin, origin, 'PUT', '/api/mod/plugin/oidc', plugin(issuer, accessTokenSecs));
    await send(admin, origin, 'PUT', '/api/mod/plugin/oidc/reset', {});
  };
  const stop = async () => {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await until(15_000, async () => {
      if (child.ended) throw new Error(`glewlwyd ended:\n${child.output}`);
      return (await probe(`${origin}/config`)).status > 0;
    }, () => `glewlwyd was not ready:\n${child.output}`);
    await send(admin, origin, 'POST', '/api/auth/', ADMIN);
    const clients = (await send(admin, origin, 'GET', '/api/mod/client/database')).json();
    // Debian's schema has one such address; the plugin reads a list.
    clients.parameters['data-format'].post_logout_redirect_uris = { multiple: true, read: true, write: true };
    await send(admin, origin, 'PUT', '/api/mod/client/database', clients);
    await send(admin, origin, 'PUT', '/api/mod/client/database/reset', {});
    await send(admin, origin, 'POST', '/api/mod/plugin/', plugin(issuer, accessTokenSecs));
    for (const name of ['profile', 'email']) await send(admin, origin, 'POST', '/api/scope/', { name, display_name: name, password_required: false, password_max_age: 0, scheme: {} });
    await send(admin, origin, 'POST', '/api/user/', { ...ADA, enabled: true, scope: ['openid', 'profile', 'email'] });
    await send(admin, origin, 'POST', '/api/client/', {
      client_id: CLIENT.id, name: 'Vestibule', enabled: true, confidential: true, client_secret: CLIENT.secret, password: CLIENT.secret,
      redirect_uri: [route('callback')], post_logout_redirect_uris: [postLogoutRedirectUri],
      backchannel_logout_uri: route('backchannel-logout'), backchannel_logout_session_required: 'true',
      frontchannel_logout_uri: route('frontchannel-logout'), frontchannel_logout_session_required: 'true',
      authorization_type: ['code', 'refresh_token'], token_endpoint_auth_method: ['client_secret_basic'], scope: ['openid', 'profile', 'email'],
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { issuer, origin, rotateKeys, log: () => child.output, stop };
}

/** Ada signs in and grants the client's scopes. */
export async function signInAt(person, { origin }) {
  await send(person, origin, 'POST', '/api/auth/', { username: ADA.username, password: ADA.password });
  await send(person, origin, 'PUT', `/api/auth/grant/${CLIENT.id}`, { scope: 'openid profile email' });
}

async function send(client, origin, method, path, body) {
  const answer = await client.fetch(`${origin}${path}`, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`);
  return answer;
}
