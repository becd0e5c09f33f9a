// The output of `make sbom` is valid by the CycloneDX schema, complete by the lock files, and has every licence text.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { licenceOf, licenceTable } from '../../lib/licences.mjs';
import { ROOT } from '../../stack.mjs';

const PYTHON = join(ROOT, '.cache/supply-chain/bin/python');
const SBOM = join(ROOT, 'target/sbom');
const BILLS = ['auth-edge', 'dev-idp', 'session-svc', 'static-web-server', 'vestibule', 'web'];
const JUDGED = ['static-web-server', 'web']; // one of cargo's and one of npm's: the schema check is slow with many components
const file = (name) => join(SBOM, `${name}.cdx.json`);
const bill = (name) => JSON.parse(readFileSync(file(name), 'utf8'));
const validate = (...files) => JSON.parse(execFileSync(PYTHON, [join(ROOT, 'dev/tests/supply-chain/validate_bill.py'), ...files], { encoding: 'utf8' }));

/** Crates of a program from outside this workspace, as `name version`. */
function linkedInto(program) {
  const tree = execFileSync('cargo', ['tree', '--quiet', '--locked', '--offline', '--target', 'x86_64-unknown-linux-gnu', '--edges', 'normal', '--prefix', 'none', '--format', '{p}', '-p', program], { cwd: ROOT, encoding: 'utf8' });
  return [...new Set(tree.split('\n').filter((line) => line && !line.includes('(/')).map((line) => line.replace(/ \(.*/, '').replace(' v', ' ')))];
}

test('there is a bill of each program, and each kind of bill is valid', () => {
  assert.deepEqual(readdirSync(SBOM).filter((name) => name.endsWith('.cdx.json')).sort(), BILLS.map((name) => `${name}.cdx.json`));
  assert.deepEqual(validate(...JUDGED.map(file)), {});
});

test('one that is not is noticed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bill-'));
  try {
    const [first, ...others] = bill('web').components;
    const wrong = { type: [{ ...first, type: 'tea' }, ...others], field: [{ ...first, tea: 1 }, ...others], name: [{ ...first, name: undefined }, ...others] };
    for (const [what, components] of Object.entries(wrong)) {
      const changed = join(folder, `${what}.json`);
      writeFileSync(changed, JSON.stringify({ ...bill('web'), components }));
      assert.deepEqual(Object.keys(validate(changed)), [changed]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('every crate that is linked into a program is in its bill', () => {
  for (const name of ['auth-edge', 'session-svc']) {
    const listed = new Set(bill(name).components.map((component) => `${component.name} ${component.version}`));
    assert.ok(linkedInto(name).length > 100);
    assert.deepEqual(linkedInto(name).filter((crate) => !listed.has(crate)), [], name);
  }
});

test('npm packages are those of the lock files that are no tools of development', () => {
  for (const [name, folder, one] of [['web', 'web', 'react-dom'], ['dev-idp', 'dev/idp', 'oidc-provider']]) {
    const { packages } = JSON.parse(readFileSync(join(ROOT, folder, 'package-lock.json'), 'utf8'));
    const purls = (wanted) => Object.entries(packages).filter(([path, entry]) => path && wanted(entry)).map(([path, entry]) => `pkg:npm/${(entry.name ?? path.split('node_modules/').at(-1)).replace('@', '%40')}@${entry.version}`);
    const listed = bill(name).components.map(({ purl }) => purl);
    const needed = purls(({ dev, devOptional }) => !dev && !devOptional);
    assert.deepEqual(needed.filter((purl) => !listed.includes(purl)), [], `${name}: what is missing`);
    assert.deepEqual(purls(({ dev }) => dev).filter((purl) => listed.includes(purl) && !purls(({ dev }) => !dev).includes(purl)), [], `${name}: tools of development`);
    assert.ok(needed.some((purl) => purl.startsWith(`pkg:npm/${one}@`)), name);
  }
});

test('no bill names the machine, and each component has a licence', () => {
  for (const name of BILLS) {
    const text = readFileSync(file(name), 'utf8');
    assert.ok(!text.includes(`${ROOT}`) && !text.includes(tmpdir()), name);
    for (const component of bill(name).components) assert.ok(licenceOf(component), `${name}: ${component.name}`);
  }
});

test('the list has every component, and one without a licence is no list', () => {
  const table = readFileSync(join(SBOM, 'licences.md'), 'utf8');
  for (const name of BILLS) for (const { name: component, version } of bill(name).components) assert.ok(table.includes(`${component} ${version} |`), component);
  assert.throws(() => licenceTable([['x', { components: [{ name: 'tea', version: '1' }] }]]), /no licence is known of tea 1/);
});

test('the texts that the images carry name every crate of a service', () => {
  const texts = readFileSync(join(SBOM, 'licences/services.txt'), 'utf8');
  for (const crate of ['auth-edge', 'session-svc'].flatMap(linkedInto)) assert.ok(`\n${texts}`.includes(`\n${crate.replace(' ', ' v')}: `), crate);
  assert.match(texts, /Permission is hereby granted/);
});
