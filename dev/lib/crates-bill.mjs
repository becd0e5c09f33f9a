// The CycloneDX bill of materials of a program, from cargo's resolved dependencies.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const TARGET = 'x86_64-unknown-linux-gnu';

/** Digests of published crates from a lock file, by `name version`. */
function digests(folder) {
  const lock = readFileSync(join(folder, 'Cargo.lock'), 'utf8');
  const entries = lock.matchAll(/name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"/g);
  return new Map([...entries].map(([, name, version, digest]) => [`${name} ${version}`, digest]));
}

/** Old crates write `MIT OR Apache-2.0` as `MIT/Apache-2.0`. */
function licencesOf({ license, license_file: file }) {
  if (license) return [{ expression: license.replaceAll('/', ' OR ') }];
  return file ? [{ license: { name: file } }] : [];
}

/** The bill as text: every crate linked into `program` of the package in `folder`, with licence and digest. */
export function cratesBill(folder, program, features = []) {
  const args = ['metadata', '--quiet', '--locked', '--format-version', '1', '--filter-platform', TARGET, ...features];
  const { packages, resolve } = JSON.parse(execFileSync('cargo', args, { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 }));
  const digestOf = digests(folder);
  const crates = new Map(packages.map((crate) => [crate.id, crate]));
  const purl = (id) => `pkg:cargo/${crates.get(id).name}@${crates.get(id).version}`;
  const isLinked = ({ dep_kinds: kinds }) => kinds.some(({ kind }) => kind === null);
  const linkedTo = new Map(resolve.nodes.map(({ id, deps }) => [id, deps.filter(isLinked).map(({ pkg }) => pkg)]));
  const component = (id, type) => {
    const { name, version, license, license_file, repository } = crates.get(id);
    const digest = digestOf.get(`${name} ${version}`);
    return {
      type, 'bom-ref': purl(id), name, version, licenses: licencesOf({ license, license_file }), purl: purl(id),
      ...(digest && { hashes: [{ alg: 'SHA-256', content: digest }] }),
      ...(repository && { externalReferences: [{ type: 'vcs', url: repository }] }),
    };
  };
  const root = packages.find(({ name }) => name === program).id;
  const linked = new Set([root]);
  for (const id of linked) linkedTo.get(id).forEach((other) => linked.add(other)); // the loop also visits crates that are added meanwhile
  return JSON.stringify({
    bomFormat: 'CycloneDX', specVersion: '1.5', version: 1,
    metadata: { component: component(root, 'application') },
    components: [...linked].slice(1).map((id) => component(id, 'library')),
    dependencies: [...linked].map((id) => ({ ref: purl(id), dependsOn: linkedTo.get(id).map(purl) })),
  });
}
