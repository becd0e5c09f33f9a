// The images that dev/test.mjs builds with dev/images.mjs, from programs in the development profile. They start
// FROM scratch, as an unnamed user, on a read-only file system, and hold the expected files and nothing else.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { imageName, IMAGES } from '../../images/names.mjs';
import { podmanEnvironment } from '../../lib/containers.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { ROOT } from '../../stack.mjs';

const START_MS = 20_000;
const env = podmanEnvironment();
const podman = (...args) => spawnSync('podman', args, { env, encoding: 'utf8' });
const LOCKED = ['--read-only', '--cap-drop=all', '--security-opt=no-new-privileges'];
const run = (name, args, flags = []) => podman('run', '--rm', ...LOCKED, '--network=none', ...flags, imageName(name), ...args);
const version = /^version = "(.+)"$/m.exec(readFileSync(join(ROOT, 'Cargo.toml'), 'utf8'))[1];

const secrets = mkdtempSync(join(tmpdir(), 'vestibule-image-'));
chmodSync(secrets, 0o755);
after(() => rmSync(secrets, { recursive: true, force: true }));
writeFileSync(join(secrets, 'key'), `${randomBytes(32).toString('hex')}\n`, { mode: 0o444 });
const settings = (values) => Object.entries(values).map(([name, value]) => `--env=${name}=${value}`);
const PROVIDER = { OIDC_ISSUER_URL: 'https://login.example', OIDC_CLIENT_ID: 'x', OIDC_CLIENT_SECRET_FILE: '/secrets/key' };
const SETTINGS = {
  edge: { ...PROVIDER, EDGE_BASE_URL: 'https://app.example', EDGE_SECRET_FILE: '/secrets/key', EDGE_SESSION_SVC_URL: 'http://session-svc:50051' },
  one: { ...PROVIDER, EDGE_UPSTREAM: 'http://application:8080', EDGE_BASE_URL: 'https://app.example' },
  'session-svc': { ...PROVIDER, SESSION_STORE: 'redis://redis:6379', SESSION_ENCRYPTION_KEY_FILE: '/secrets/key' },
};

for (const [name, values] of Object.entries(SETTINGS)) {
  test(`${name} starts FROM scratch and judges its settings`, () => {
    const told = run(name, ['--version']);
    assert.equal(told.status, 0, told.stderr);
    assert.ok(told.stdout.includes(version), told.stdout);
    const data = name === 'one' ? ['--tmpfs=/data:mode=1777'] : [];
    const flags = [...settings(values), ...data, `--volume=${secrets}:/secrets:ro`];
    const right = run(name, ['--check-config'], flags);
    assert.equal(right.status, 0, right.stdout + right.stderr);
    const wrong = run(name, ['--check-config'], [...flags, '--env=OIDC_ISSUER_URL=http://login.example']);
    assert.equal(wrong.status, 78, wrong.stdout + wrong.stderr);
  });
}

/** Paths and modes in an image, without the folders; and the content of some files. */
function contents(name) {
  const id = podman('create', imageName(name)).stdout.trim();
  try {
    const tar = join(secrets, `${name}.tar`);
    execFileSync('podman', ['export', '--output', tar, id], { env });
    const paths = execFileSync('tar', ['--list', '--file', tar], { encoding: 'utf8' }).trim().split('\n').filter((path) => !path.endsWith('/'));
    const read = (path) => {
      execFileSync('tar', ['--extract', '--directory', secrets, '--file', tar, path]);
      return readFileSync(join(secrets, path));
    };
    return { paths, read };
  } finally {
    podman('rm', id);
  }
}

// the files that the runtime puts into every container
const OF_THE_RUNTIME = /^(dev|etc\/(hosts|hostname|resolv\.conf|mtab)|proc|run|sys)(\/|$)/;

const PROGRAMS = [['edge', 'auth-edge'], ['session-svc', 'session-svc'], ['web', 'static-web-server'], ['one', 'vestibule']];

test('a service holds its program, the authorities and the licences, and nothing else', () => {
  for (const [name, program] of [['edge', 'auth-edge'], ['session-svc', 'session-svc'], ['one', 'vestibule']]) {
    const { paths, read } = contents(name);
    assert.deepEqual(paths.filter((path) => !OF_THE_RUNTIME.test(path)).sort(), [program, 'etc/ssl/certs/ca-certificates.crt', 'licences/services.txt', 'licences/vestibule.txt'].sort(), name);
    const authorities = read('etc/ssl/certs/ca-certificates.crt').toString().match(/-----BEGIN CERTIFICATE-----/g) ?? [];
    assert.ok(authorities.length > 50, `${authorities.length} authorities`);
  }
});

test('what an image is made of travels with its licences', () => {
  for (const [name, file, what] of [['edge', 'licences/services.txt', /^tokio v.*: MIT$/m], ['session-svc', 'licences/services.txt', /^redis v.*: BSD-3-Clause$/m], ['web', 'licences/static-web-server.txt', /^tokio v.*: MIT$/m], ['web', 'pages/licences.md', /react\b.*MIT/]]) {
    const text = contents(name).read(file).toString();
    assert.match(text, what, `${name}: ${file}`);
    assert.match(text, /Permission is hereby granted/, `${name}: ${file}`);
  }
});

test('no path of this machine is in a program', () => {
  for (const [name, program] of PROGRAMS) {
    // With debug information a program is hundreds of megabytes, so it is not decoded to text.
    const bytes = contents(name).read(program);
    for (const path of [ROOT.replace(/\/$/, ''), process.env.CARGO_HOME ?? join(process.env.HOME, '.cargo')]) {
      const at = bytes.indexOf(`${path}/`);
      assert.equal(at, -1, `${program} holds ${bytes.subarray(at, at + 80)}`);
    }
  }
});

test('no program holds the time of its compilation', () => {
  for (const [name, program] of PROGRAMS) {
    // C strings end with a NUL: each becomes a line for grep.
    const times = spawnSync('grep', ['--null-data', '--text', '--line-regexp', '--extended-regexp', '[0-9]{2}:[0-9]{2}:[0-9]{2}|[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{4}'], { input: contents(name).read(program), encoding: 'utf8' });
    assert.deepEqual(times.stdout.split('\0').filter((time) => time && !['00:00:00', 'Jan  1 1970'].includes(time)), [], program);
  }
});

test('the web image serves the pages', async () => {
  const port = await freePort();
  const id = podman('run', '--detach', '--rm', ...LOCKED, `--publish=127.0.0.1:${port}:8080`, imageName('web')).stdout.trim();
  try {
    const answered = async () => ((await probe(`http://127.0.0.1:${port}/`)).status === 200);
    await until(START_MS, answered, () => podman('logs', id).stdout);
    const { body } = await probe(`http://127.0.0.1:${port}/account`);
    assert.match(body, /<div id="root"|<script/, 'unknown paths belong to the app');
  } finally {
    podman('rm', '--force', '--time=0', id);
  }
});

test('the development provider starts, and keeps nothing where it cannot write', () => {
  const { status, stdout, stderr } = run('dev-idp', ['--help']);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /--issuer URL/);
});

test('each image says which source it is made of', () => {
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  for (const name of IMAGES) {
    const [{ Config }] = JSON.parse(podman('image', 'inspect', imageName(name)).stdout);
    assert.equal(Config.Labels['org.opencontainers.image.title'], `vestibule-${name}`);
    assert.equal(Config.Labels['org.opencontainers.image.version'], version);
    assert.ok(Config.Labels['org.opencontainers.image.revision'].startsWith(revision), name);
    assert.notEqual(Config.User.split(':')[0], '0');
  }
});

test('the same programs make the same images, to the byte', () => {
  const build = () => execFileSync(process.execPath, ['dev/images.mjs', '--again', '--only', 'edge,session-svc,web,one'], { cwd: ROOT, env: { ...env, IMAGE_TAG: `again-${process.pid}` }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim().split('\n').map((line) => JSON.parse(line));
  try {
    const [first, second] = [build(), build()];
    assert.deepEqual(second, first);
    assert.equal(first.length, 4);
  } finally {
    for (const name of ['edge', 'session-svc', 'web', 'one']) podman('rmi', imageName(name, `again-${process.pid}`));
  }
});
