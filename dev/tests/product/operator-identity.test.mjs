// The operator's tool as its pod runs it: told by variables where the service is and who it is, with the list of callers that
// k8s/components/mtls ships.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { CERTIFICATES } from '../../lib/cluster-secrets.mjs';
import { issue, makeAuthority } from '../../lib/authority.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { binary, ROOT } from '../../stack.mjs';

const READY_MS = 20_000;
const [FAILED, DONE, NO_SUCH_SESSION] = [1, 0, 3];

let folder;
let service;
let url;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vestibule-operator-'));
  const authority = makeAuthority(join(folder, 'authority'));
  issue(authority, join(folder, 'service'), ['localhost'], ['serverAuth']);
  for (const name of ['operator-session-client', 'session-svc-redis-client']) issue(authority, join(folder, name), CERTIFICATES[name].names, CERTIFICATES[name].usages);
  const [port, admin] = [await freePort(), await freePort()];
  const at = (name) => join(folder, 'service', name);
  service = new Child('session-svc', binary('session-svc'), [], {
    env: {
      PATH: process.env.PATH, SESSION_STORE: 'memory:', SESSION_LISTEN: `127.0.0.1:${port}`, SESSION_ADMIN_LISTEN: `127.0.0.1:${admin}`,
      SESSION_TLS_CERT_FILE: at('tls.crt'), SESSION_TLS_KEY_FILE: at('tls.key'), SESSION_CLIENT_CA_FILE: at('ca.crt'),
      SESSION_CALLERS: join(ROOT, 'k8s/components/mtls/callers.toml'), OIDC_ISSUER_URL: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'operator', OIDC_CLIENT_SECRET: 'a secret of nobody',
    },
  });
  url = `https://localhost:${port}`;
  await until(READY_MS, async () => (await probe(`http://127.0.0.1:${admin}/readyz`)).status === 200, () => service.tail());
});
after(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The tool with the variables of the component operator, as the bearer of a certificate: {code, text}. */
function tool(certificate, ...words) {
  const at = (name) => join(folder, certificate, name);
  const env = {
    PATH: process.env.PATH, OIDC_ISSUER_URL: 'http://127.0.0.1:9', OPERATOR_SESSION_SVC_URL: url,
    OPERATOR_SESSION_SVC_CA_FILE: at('ca.crt'), OPERATOR_SESSION_SVC_CERT_FILE: at('tls.crt'), OPERATOR_SESSION_SVC_KEY_FILE: at('tls.key'),
  };
  return new Promise((resolve) => {
    const child = spawn(binary('session-svc'), ['sessions', ...words], { env });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { text += chunk; });
    child.on('close', (code) => resolve({ code, text }));
  });
}

test('the operator lists, shows and ends sessions with no flag that says where', async () => {
  for (const [words, expected] of [
    [['list', '--subject', 'ada'], DONE], [['end', '--subject', 'ada', '--yes'], DONE],
    [['show', '--handle', '0'.repeat(32)], NO_SUCH_SESSION], [['end', '--handle', '0'.repeat(32)], NO_SUCH_SESSION],
  ]) {
    const { code, text } = await tool('operator-session-client', ...words);
    assert.equal(code, expected, `${words.join(' ')}: ${text}`);
  }
});

test('a certificate of the same authority that is not on the list is refused', async () => {
  const { code, text } = await tool('session-svc-redis-client', 'list', '--subject', 'ada');
  assert.equal(code, FAILED);
  assert.match(text, /does not know this caller/);
});

test('a flag wins over the variable', async () => {
  const { code, text } = await tool('operator-session-client', 'list', '--subject', 'ada', '--service', 'https://localhost:1');
  assert.equal(code, FAILED);
  assert.match(text, /no session service answers at https:\/\/localhost:1/);
});
