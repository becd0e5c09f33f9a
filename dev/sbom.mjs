// `make sbom`: what the images are made of, as CycloneDX bills of materials in target/sbom: one for each program and for the pages;
// licences.md, which lists the licence of everything in them, and licences/, the texts as the images carry them.
// The same source gives the same files: they carry the time of SOURCE_DATE_EPOCH, or of the last commit.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { sourceEpoch } from './images/source.mjs';
import { checkTools, run } from './lib/build.mjs';
import { licenceTable } from './lib/licences.mjs';
import { cargoTool } from './lib/tools.mjs';
import { ROOT } from './stack.mjs';

const OUT = join(ROOT, 'target/sbom');
// cargo-cyclonedx writes beside the manifests: it gets a copy, outside this workspace
const WORK = mkdtempSync(join(tmpdir(), 'vestibule-sbom-'));
const TARGET = 'x86_64-unknown-linux-gnu';
const say = (text) => process.stderr.write(`${text}\n`);
const output = (command, args, cwd = ROOT) => execFileSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });

/** The folder of a crate's source, downloaded by cargo. */
function downloaded(name, version) {
  const asking = join(WORK, 'asking'); // a package that needs it, for cargo downloads no other way
  mkdirSync(join(asking, 'src'), { recursive: true });
  writeFileSync(join(asking, 'src/lib.rs'), '');
  writeFileSync(join(asking, 'Cargo.toml'), `[package]\nname = "asking"\nedition = "2021"\n[dependencies]\n${name} = "=${version}"\n`);
  execFileSync('cargo', ['fetch', '--quiet'], { cwd: asking });
  const { packages } = JSON.parse(output('cargo', ['metadata', '--offline', '--format-version', '1'], asking));
  return dirname(packages.find((found) => found.name === name).manifest_path);
}

/** Bills of crates below `folder`: {name: text}. */
async function ofCrates(folder, crates, features = []) {
  const cyclonedx = await cargoTool('cargo-cyclonedx', say);
  const args = ['cyclonedx', '--quiet', '--format', 'json', '--spec-version', '1.5', '--target', TARGET, '--no-build-deps', '--describe', 'crate', ...features];
  await run(cyclonedx, args, { cwd: folder, env: { ...process.env, SOURCE_DATE_EPOCH: sourceEpoch() }, quiet: true });
  const files = output('find', ['.', '-name', '*.cdx.json'], folder).trim().split('\n');
  return crates.map((crate) => [crate, readFileSync(join(folder, files.find((file) => file.endsWith(`/${crate}.cdx.json`)) ?? `${crate}.cdx.json`), 'utf8')]);
}

/**
 * The bill of an npm package by its lock file, without the tools of development. npm's own `--omit dev` leaves out what is also a peer
 * of such a tool, React among it.
 */
function ofPackages(folder) {
  const all = JSON.parse(output('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], join(ROOT, folder)));
  const isDevelopment = ({ properties }) => properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true');
  const components = all.components.filter((component) => !isDevelopment(component));
  const kept = new Set([all.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])]);
  const dependencies = all.dependencies.filter(({ ref }) => kept.has(ref)).map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }));
  return JSON.stringify({ ...all, components, dependencies });
}

/** The same for the same source: without the number, the time and the folder of this run. */
function write(name, text) {
  const { serialNumber: _, ...bill } = JSON.parse(text.replaceAll(WORK, ''));
  bill.metadata.timestamp = new Date(Number(sourceEpoch()) * 1000).toISOString();
  writeFileSync(join(OUT, `${name}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`);
  process.stdout.write(`target/sbom/${name}.cdx.json: ${bill.components.length} components\n`);
  return [name, bill];
}

try {
  checkTools();
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  const source = join(WORK, 'source');
  for (const file of output('git', ['ls-files']).trim().split('\n').filter((name) => /(Cargo\.(toml|lock)|\.rs)$/.test(name))) {
    mkdirSync(dirname(join(source, file)), { recursive: true });
    cpSync(join(ROOT, file), join(source, file));
  }
  const [, version] = /^WEB_SERVER=(.+)$/m.exec(readFileSync(join(ROOT, 'dev/images/programs.sh'), 'utf8'));
  const server = join(WORK, 'static-web-server');
  cpSync(downloaded('static-web-server', version), server, { recursive: true });
  const bills = [
    ...(await ofCrates(source, ['auth-edge', 'session-svc'])),
    ...(await ofCrates(server, ['static-web-server'], ['--no-default-features', '--features', 'fallback-page,compression-gzip,compression-brotli'])),
    ['web', ofPackages('web')],
    ['dev-idp', ofPackages('dev/idp')],
  ];
  const written = bills.map(([name, text]) => write(name, text));
  writeFileSync(join(OUT, 'licences.md'), licenceTable(written));
  await run('dev/images/programs.sh', ['licences', 'amd64', join(OUT, 'licences')], { quiet: true });
  process.stdout.write('target/sbom/licences.md, and the texts in target/sbom/licences\n');
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(WORK, { recursive: true, force: true });
}
