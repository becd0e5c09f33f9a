// Certificates and keys that settings name: --check-config opens what the start would open, and the start says the same.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { makeCertificate } from '../../lib/certificate.mjs';
import { binary } from '../../stack.mjs';

const folder = mkdtempSync(join(tmpdir(), 'vestibule-files-'));
after(() => rmSync(folder, { recursive: true }));
const made = (name) => {
  mkdirSync(join(folder, name));
  return makeCertificate(join(folder, name));
};
const [own, other] = [made('own'), made('other')];

/** Runs a program with these settings and no others. */
function run(program, args, env) {
  const { status, stdout, stderr } = spawnSync(binary(program), args, { env, encoding: 'utf8', timeout: 20_000 });
  return { status, text: stdout + stderr };
}

const PROVIDER = { OIDC_ISSUER_URL: 'https://issuer.example', OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: 'a-secret-long-enough-for-everyone' };
/** Each program, its pairs of certificate and key, its files of authorities, and what else it needs. */
const PROGRAMS = {
  'auth-edge': {
    pairs: [['EDGE_TLS_CERT_FILE', 'EDGE_TLS_KEY_FILE'], ['EDGE_SESSION_SVC_CERT_FILE', 'EDGE_SESSION_SVC_KEY_FILE']],
    authorities: ['EDGE_SESSION_SVC_CA_FILE', 'EDGE_UPSTREAM_CA_FILE', 'OIDC_CA_FILE'],
    settings: { ...PROVIDER, EDGE_LISTEN: '127.0.0.1:0', EDGE_BASE_URL: 'https://app.example', EDGE_SECRET: 'another-secret-long-enough-for-all', EDGE_SESSION_SVC_URL: 'https://127.0.0.1:50051' },
  },
  'session-svc': {
    pairs: [['SESSION_TLS_CERT_FILE', 'SESSION_TLS_KEY_FILE']],
    authorities: ['SESSION_CLIENT_CA_FILE', 'OIDC_CA_FILE'],
    settings: { ...PROVIDER, SESSION_LISTEN: '127.0.0.1:0', SESSION_STORE: 'memory:' },
  },
};

for (const [program, { pairs, authorities, settings }] of Object.entries(PROGRAMS)) {
  const right = {
    ...settings,
    ...Object.fromEntries(pairs.flatMap(([certificate, key]) => [[certificate, own.certificate], [key, own.key]])),
    ...Object.fromEntries(authorities.map((name) => [name, own.certificate])),
  };
  /** Both refuse the change, with the same words: the setting, the file, and what is wrong. */
  const refuses = (change, name, file, said) => {
    const checked = run(program, ['--check-config'], { ...right, ...change });
    assert.equal(checked.status, 78, checked.text);
    const line = checked.text.split('\n').find((text) => text.includes(`${name} (--`)) ?? '';
    assert.ok(line.includes(file) && line.includes(said), `${name}: ${file} ${said} is not in:\n${checked.text}`);
    const started = run(program, [], { ...right, ...change });
    assert.deepEqual([started.status, started.text], [checked.status, checked.text]);
  };
  const missing = join(folder, 'missing.pem');

  test(`${program} --check-config takes files that fit`, () => {
    const checked = run(program, ['--check-config'], right);
    assert.deepEqual([checked.status, checked.text], [0, 'configuration ok\n']);
  });

  test(`${program} names every file that is missing`, () => {
    for (const name of [...pairs.flat(), ...authorities]) refuses({ [name]: missing }, name, missing, 'cannot be read');
  });

  test(`${program} names certificates and keys that were swapped`, () => {
    for (const [certificate, key] of pairs) {
      const swapped = { [certificate]: own.key, [key]: own.certificate };
      refuses(swapped, certificate, own.key, 'holds a private key and no certificate');
      refuses(swapped, key, own.certificate, 'holds a certificate and no private key');
    }
    for (const name of authorities) refuses({ [name]: own.key }, name, own.key, 'no certificate');
  });

  test(`${program} names a key that does not belong to its certificate`, () => {
    for (const [, key] of pairs) refuses({ [key]: other.key }, key, other.key, 'does not belong to the certificate');
  });
}

test('session-svc names a client CA without a certificate, and a list of callers that is not there or not one', () => {
  const { settings } = PROGRAMS['session-svc'];
  const wrong = (change) => run('session-svc', ['--check-config'], { ...settings, ...change });
  const alone = wrong({ SESSION_CLIENT_CA_FILE: own.certificate });
  assert.deepEqual([alone.status, alone.text.includes('SESSION_CLIENT_CA_FILE (--client-ca-file): needs SESSION_TLS_CERT_FILE')], [78, true], alone.text);
  const list = join(folder, 'callers.toml');
  writeFileSync(list, 'nobody');
  for (const path of [list, join(folder, 'nowhere.toml'), folder]) {
    const callers = wrong({ SESSION_TLS_CERT_FILE: own.certificate, SESSION_TLS_KEY_FILE: own.key, SESSION_CLIENT_CA_FILE: own.certificate, SESSION_CALLERS: path });
    assert.deepEqual([callers.status, callers.text.includes('SESSION_CALLERS')], [78, true], callers.text);
  }
});
