// `make sbom`: writes CycloneDX bills of materials of the images to target/sbom, for each program and the pages.
// Also licences.md with the licence of each component, and licences/ with the texts that the images contain.
// The same source gives the same files: they have the time of SOURCE_DATE_EPOCH or of the last commit.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { sourceEpoch } from './images/source.mjs';
import { cratesBill } from './lib/crates-bill.mjs';
import { checkTools, run } from './lib/build.mjs';
import { licenceTable } from './lib/licences.mjs';
import { ROOT } from './stack.mjs';

const OUT = join(ROOT, 'target/sbom');
const WORK = mkdtempSync(join(tmpdir(), 'vestibule-sbom-'));
const WEB_SERVER_FEATURES = ['--no-default-features', '--features', 'fallback-page,compression-gzip,compression-brotli'];
const output = (command, args, cwd = ROOT) => execFileSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });

/** The folder of a crate's source, downloaded by cargo. */
function downloaded(name, version) {
  const asking = join(WORK, 'asking'); // a package that depends on it, as cargo downloads only dependencies
  mkdirSync(join(asking, 'src'), { recursive: true });
  writeFileSync(join(asking, 'src/lib.rs'), '');
  writeFileSync(join(asking, 'Cargo.toml'), `[package]\nname = "asking"\nedition = "2021"\n[dependencies]\n${name} = "=${version}"\n`);
  execFileSync('cargo', ['fetch', '--quiet'], { cwd: asking });
  const { packages } = JSON.parse(output('cargo', ['metadata', '--offline', '--format-version', '1'], asking));
  return dirname(packages.find((found) => found.name === name).manifest_path);
}

/**
 * The bill of an npm package from its lock file, without development tools. npm's `--omit dev` also leaves out peer
 * dependencies of such a tool, such as React.
 */
function ofPackages(folder) {
  const all = JSON.parse(output('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], join(ROOT, folder)));
  const isDevelopment = ({ properties }) => properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true');
  const components = all.components.filter((component) => !isDevelopment(component));
  const kept = new Set([all.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])]);
  const dependencies = all.dependencies.filter(({ ref }) => kept.has(ref)).map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }));
  return JSON.stringify({ ...all, components, dependencies });
}

/** Writes a bill without the serial number and time of this run: the same source gives the same bill. */
function write(name, text) {
  const { serialNumber: _, ...bill } = JSON.parse(text);
  bill.metadata.timestamp = new Date(Number(sourceEpoch()) * 1000).toISOString();
  writeFileSync(join(OUT, `${name}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`);
  process.stdout.write(`target/sbom/${name}.cdx.json: ${bill.components.length} components\n`);
  return [name, bill];
}

try {
  checkTools();
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  const [, version] = /^WEB_SERVER=(.+)$/m.exec(readFileSync(join(ROOT, 'dev/images/programs.sh'), 'utf8'));
  const server = join(WORK, 'static-web-server');
  cpSync(downloaded('static-web-server', version), server, { recursive: true });
  const bills = [
    ...['auth-edge', 'session-svc', 'vestibule'].map((name) => [name, cratesBill(ROOT, name)]),
    ['static-web-server', cratesBill(server, 'static-web-server', WEB_SERVER_FEATURES)],
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
