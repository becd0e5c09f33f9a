// The build context of the images holds every source of the programs and nothing else. The builds themselves run
// with `node dev/images.mjs --default`, which takes many minutes.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, test } from 'node:test';

import { IMAGES } from '../../images/names.mjs';
import { ROOT } from '../../stack.mjs';
import { containerfile, withCopied } from './containerfile.mjs';

const { args, stages, stage } = containerfile();
const metadata = (cwd) => spawnSync('cargo', ['metadata', '--locked', '--offline', '--no-deps', '--format-version', '1'], { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
const workspace = JSON.parse(metadata(ROOT).stdout);
const members = workspace.packages.map(({ manifest_path: manifest }) => relative(ROOT, dirname(manifest)));
const folders = [...new Set([...members, ...workspace.packages.flatMap(({ dependencies }) => dependencies.flatMap(({ path }) => (path ? relative(ROOT, path) : [])))])];
const tracked = (folder) => execFileSync('git', ['ls-files', '--', folder], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');

/** The errors in a copy of the workspace. */
function faults(copy) {
  const { status, stderr } = metadata(copy);
  const missing = folders.flatMap(tracked).filter((file) => existsSync(join(ROOT, file)) && !existsSync(join(copy, file)));
  return [...(status === 0 ? [] : [stderr]), ...missing.map((file) => `${file} is missing`)];
}

test('every member of the workspace and every path dependency reaches the stage that compiles', async () => {
  assert.ok(folders.length > 5, folders.join());
  assert.deepEqual(await withCopied(stage('programs'), faults), []);
});

test('pages and provider have what their builds ask for', async () => {
  for (const [name, folder] of [['pages', 'web'], ['provider', 'dev/idp']]) {
    // their WORKDIR is the folder itself
    const missing = await withCopied(stage(name), (copy) => tracked(folder).map((file) => relative(folder, file)).filter((file) => !existsSync(join(copy, file))));
    assert.deepEqual(missing, [], name);
  }
});

const scratch = mkdtempSync(join(tmpdir(), 'vestibule-ignored-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

test('secrets, builds and history stay out', async () => {
  const kept = ['Cargo.toml', 'dev/images/programs.sh', 'auth-edge/src/main.rs'];
  const left = ['.git/config', '.run/secrets.json', '.env', '.env.local', 'dev/compose/.env', 'target/release/auth-edge', 'fuzz/target/x', 'web/node_modules/x.js', 'web/dist/index.html', 'k8s/overlays/dev/secrets/edge-secret', 'dev/secrets/key', '.cache/tools/x'];
  for (const file of [...kept, ...left]) {
    mkdirSync(dirname(join(scratch, file)), { recursive: true });
    writeFileSync(join(scratch, file), 'x');
  }
  cpSync(join(ROOT, '.dockerignore'), join(scratch, '.dockerignore'));
  const files = (folder, from = folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? files(join(folder, entry.name), from) : [relative(from, join(folder, entry.name))]));
  const found = await withCopied(stage('programs'), (copy) => files(copy), { context: scratch });
  assert.deepEqual(found.filter((file) => file !== '.dockerignore').sort(), kept.sort());
});

test('base images are pinned by digest, and nothing else is pulled', () => {
  for (const [name, image] of Object.entries(args)) assert.match(image, /^docker\.io\/library\/[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/, name);
  const bases = new Set(['scratch', ...Object.keys(args).map((name) => `\${${name}}`), ...stages.map(({ name }) => name)]);
  for (const { name, base } of stages) assert.ok(bases.has(base), `${name} begins with ${base}`);
});

test('each image says what it is, and runs as a user of its own', () => {
  const { version, license, repository } = Object.fromEntries([...readFileSync(join(ROOT, 'Cargo.toml'), 'utf8').matchAll(/^(version|license|repository) = "(.+)"$/gm)].map(([, key, value]) => [key, value]));
  const users = new Set();
  for (const name of IMAGES) {
    const own = stage(name);
    const lines = [...(stage(own.base)?.lines ?? []), ...own.lines];
    const text = lines.join('\n');
    for (const label of ['title', 'description', 'source', 'licenses', 'version']) assert.match(text, new RegExp(`org\\.opencontainers\\.image\\.${label}="[^"]+"`), `${name}: ${label}`);
    assert.match(text, new RegExp(`image\\.title="vestibule-${name}"`));
    assert.ok(text.includes(`image.version="${version}"`), `${name}: the version is the workspace's, ${version}`);
    assert.ok(text.includes(`licenses="${license}"`) && text.includes(`source="${repository}"`), name);
    users.add(/^USER (\d+:\d+)$/m.exec(text)?.[1]);
  }
  assert.ok(!users.has(undefined) && !users.has('0:0') && users.size === IMAGES.length, [...users].join());
});
