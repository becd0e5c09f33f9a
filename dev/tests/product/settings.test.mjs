// Both programs' command lines: help, version, and a configuration refused with every mistake named.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { binary } from '../../stack.mjs';

/** Runs a program with these settings and no others. */
function run(program, args, env = {}) {
  const { status, stdout, stderr } = spawnSync(binary(program), args, { env, encoding: 'utf8', timeout: 20_000 });
  return { status, text: stdout + stderr };
}

const PROVIDER = { OIDC_ISSUER_URL: 'https://issuer.example', OIDC_CLIENT_ID: 'client', OIDC_CLIENT_SECRET: 'a-secret-long-enough-for-everyone' };
const RIGHT = {
  'auth-edge': { ...PROVIDER, EDGE_BASE_URL: 'https://app.example', EDGE_SECRET: 'another-secret-long-enough-for-all', EDGE_SESSION_SVC_URL: 'http://127.0.0.1:50051' },
  'session-svc': { ...PROVIDER, SESSION_STORE: 'memory:' },
};

for (const program of ['auth-edge', 'session-svc']) {
  test(`${program} --help documents every setting, --version says one`, () => {
    const help = run(program, ['--help']);
    assert.equal(help.status, 0);
    const names = program === 'auth-edge'
      ? ['EDGE_LISTEN', 'EDGE_BASE_URL', 'EDGE_SECRET', 'EDGE_SESSION_SVC_URL', 'EDGE_ROUTES', 'EDGE_TRUSTED_PROXIES', 'OIDC_ISSUER_URL', 'OIDC_SCOPE', 'LOG_FORMAT']
      : ['SESSION_LISTEN', 'SESSION_STORE', 'SESSION_ENCRYPTION_KEY', 'SESSION_ROLLING_DURATION', 'SESSION_ABSOLUTE_DURATION', 'OIDC_ISSUER_URL', 'LOG_FORMAT'];
    for (const name of names) assert.ok(help.text.includes(name), name);
    assert.match(run(program, ['--version']).text, /\d+\.\d+\.\d+/);
  });

  test(`${program} accepts a right configuration and refuses an unknown flag with 2`, () => {
    const checked = run(program, ['--check-config'], RIGHT[program]);
    assert.equal(checked.status, 0, checked.text);
    assert.equal(run(program, ['--no-such-flag'], RIGHT[program]).status, 2);
  });

  test(`${program} names every mistake at once, exits 78 and prints no secret`, () => {
    const wrong = {
      OIDC_ISSUER_URL: 'http://issuer.example', OIDC_CLIENT_ID: '', OIDC_CLIENT_SECRET: 'sh0rt', OIDC_SCOPE: 'openidx profile', OIDC_ID_TOKEN_SIGNING_ALG: 'none', OIDC_HTTP_TIMEOUT_MS: '-1',
      ...(program === 'auth-edge'
        ? { EDGE_BASE_URL: 'not a url', EDGE_SECRET: 'tiny', EDGE_TRANSACTION_DURATION: '0', EDGE_TRUSTED_PROXIES: '300.0.0.0/8', EDGE_COOKIE_SAME_SITE: 'sometimes' }
        : { SESSION_STORE: 'file', SESSION_ENCRYPTION_KEY: 'c0ffee', SESSION_ROLLING_DURATION: '100', SESSION_ABSOLUTE_DURATION: '50' }),
    };
    const refused = run(program, ['--check-config'], wrong);
    assert.equal(refused.status, 78, refused.text);
    const named = Object.keys(wrong).filter((name) => name !== 'SESSION_ABSOLUTE_DURATION' && name !== 'OIDC_CLIENT_SECRET');
    for (const name of [...named, 'OIDC_CLIENT_SECRET']) assert.ok(refused.text.includes(name), `${name} is not named in:\n${refused.text}`);
    for (const secret of ['sh0rt', 'tiny', 'c0ffee']) assert.ok(!refused.text.includes(secret), `the secret ${secret} is printed`);
    assert.equal(run(program, [], wrong).status, 78);
  });

  // conformance: B-064
  test(`${program} takes several providers from a file and never two of one issuer`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-'));
    const settings = Object.fromEntries(Object.entries(RIGHT[program]).filter(([name]) => !name.startsWith('OIDC_')));
    const table = (id, issuer) => `[[provider]]\nid = "${id}"\nissuer_url = "${issuer}"\nclient_id = "client"\nclient_auth_method = "none"\n`;
    const check = (issuer) => {
      const file = join(folder, 'providers.toml');
      writeFileSync(file, `default = "a"\n${table('a', 'https://issuer.example')}${table('b', issuer)}`);
      return run(program, ['--check-config'], { ...settings, OIDC_PROVIDERS: file });
    };
    const right = check('https://other.example');
    assert.equal(right.status, 0, right.text);
    const refused = check('https://issuer.example');
    assert.equal(refused.status, 78, refused.text);
    assert.match(refused.text, /OIDC_PROVIDERS.*line 9: issuer_url "https:\/\/issuer.example" is there twice/);
    rmSync(folder, { recursive: true });
  });
}

test('auth-edge warns of routes that cannot do what they are for, and exits 0', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-'));
  const file = join(folder, 'routes.toml');
  const rule = (path, lines) => `[[route]]\npath = "${path}"\nguard = "api"\n${lines}\n`;
  writeFileSync(file, rule('/account/*', 'upstream = "dir:nowhere"') + rule('/orders/*', 'upstream = "http://orders:8080"\nscopes = ["orders:read"]'));
  const checked = run('auth-edge', ['--check-config'], { ...RIGHT['auth-edge'], EDGE_ROUTES: file });
  assert.equal(checked.status, 0, checked.text);
  assert.match(checked.text, /^configuration ok$/m);
  const warnings = checked.text.split('\n').filter((line) => line.startsWith('warning: '));
  const expected = ['the folder nowhere is not there', 'no route serves https://app.example/', 'asks for the scope "orders:read"'];
  assert.equal(warnings.length, expected.length, checked.text);
  expected.forEach((words, at) => assert.ok(warnings[at].includes(words), `${words}: ${warnings[at]}`));
  rmSync(folder, { recursive: true });
});
