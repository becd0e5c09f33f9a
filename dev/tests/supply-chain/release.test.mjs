// The workflows and Renovate's settings are valid by their schemas and avoid known dangerous patterns.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { ROOT } from '../../stack.mjs';

const FOLDER = '.github/workflows';
const WORKFLOWS = Object.fromEntries(readdirSync(join(ROOT, FOLDER)).map((name) => [name, readFileSync(join(ROOT, FOLDER, name), 'utf8')]));
const { 'ci.yml': ci, 'codeql.yml': codeql, 'release.yml': release } = WORKFLOWS;
const tool = (name, ...args) => spawnSync(join(ROOT, '.cache/supply-chain/bin', name), args, { cwd: ROOT, encoding: 'utf8' });

/** The findings of zizmor for a workflow; it runs offline. */
function judge(workflow) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-workflow-'));
  try {
    const file = join(folder, FOLDER, 'judged.yml');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, workflow);
    const { stdout } = tool('zizmor', '--offline', '--no-progress', '--no-exit-codes', '--format=json', file);
    return JSON.parse(stdout).filter(({ ignored }) => !ignored).map(({ ident }) => ident);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('the workflows and the settings of Renovate are valid', () => {
  const workflows = Object.keys(WORKFLOWS).map((name) => ['vendor.github-workflows', join(FOLDER, name)]);
  for (const [schema, file] of [...workflows, ['vendor.renovate', 'renovate.json']]) {
    const { status, stdout } = tool('check-jsonschema', '--builtin-schema', schema, file);
    assert.equal(status, 0, stdout);
  }
});

test('nothing known to be dangerous is in a workflow, and what is gets noticed', () => {
  for (const [name, text] of Object.entries(WORKFLOWS)) assert.deepEqual(judge(text), [], name);
  assert.deepEqual([...new Set(judge(release.replace(/docker\/login-action@[0-9a-f]{40}/, 'docker/login-action@v3')))], ['unpinned-uses']);
  assert.ok(judge(release.replace('"${GITHUB_REF_NAME#v}\\""', '"${{ github.ref_name }}\\""')).includes('template-injection'));
  assert.ok(judge(release.replaceAll('persist-credentials: false', 'fetch-depth: 1')).includes('artipacked'));
});

test('every action is pinned by commit, with its version in a comment, and one action has one pin', () => {
  const uses = [...Object.values(WORKFLOWS).join('').matchAll(/uses: (\S+?)@(\S+)(.*)$/gm)];
  assert.ok(uses.length > 15);
  const pins = new Map();
  for (const [line, action, pin, comment] of uses) {
    assert.match(pin, /^[0-9a-f]{40}$/, line);
    assert.match(comment, /^ # v\d+\.\d+\.\d+/, line);
    assert.equal(pins.get(action) ?? pin, pin, action);
    pins.set(action, pin);
  }
});

test('changes and releases are tested in the image that compiles them, and each image for production is released', () => {
  const base = /^ARG RUST_IMAGE=(.+)$/m.exec(readFileSync(join(ROOT, 'Containerfile'), 'utf8'))[1];
  for (const text of [ci, release]) assert.ok(text.includes(`image: ${base}\n`));
  for (const image of ['edge', 'session-svc', 'web', 'one']) assert.ok(release.includes(`{ image: ${image}, `), image);
});

test('a pull request runs every check and CodeQL, and writes nothing but findings', () => {
  for (const text of [ci, codeql]) {
    assert.match(text, /^on:\n {2}pull_request:$/m);
    assert.match(text, /^permissions: \{\}$/m);
    assert.deepEqual([...text.matchAll(/^ +([a-z-]+): write/gm)].map(([, right]) => right), text === codeql ? ['security-events'] : []);
    assert.ok(!text.includes('secrets.'));
  }
  assert.match(ci, /^ +- run: \.ci\/run$/m);
  assert.match(codeql, /language: \[rust, javascript-typescript\]/);
});

test('it publishes every package, the chart and the images, each by its identity and without a long-lived secret', () => {
  for (const command of ['npm publish "./$file" --access public --provenance', 'pypa/gh-action-pypi-publish@', 'cargo publish --locked -p vestibule-session-api', 'cosign sign --yes "$CHART"', 'cosign sign --yes --recursive "$IMAGE"']) assert.ok(release.includes(command), command);
  assert.deepEqual([...new Set([...release.matchAll(/secrets\.(\w+)/g)].map(([, name]) => name))], ['GITHUB_TOKEN']);
});
