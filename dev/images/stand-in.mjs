// Stand-ins for the base images of the Containerfile, for machines that reach no registry: Debian by mmdebstrap, with this machine's
// Rust toolchain or node put where the real ones have them. With them the default build runs line by line as it does elsewhere:
//
//   node dev/images.mjs --default --stand-in
//   node dev/images.mjs --default --stand-in --arch arm64 --only edge,session-svc,web
//
// For another architecture Rust is Debian's, which has the standard library of each; rustup's is elsewhere. They need root, and Debian's mmdebstrap. What is built on them is for tests: neither their toolchain nor their Debian is pinned.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { Problem, run } from '../lib/build.mjs';
import { buildImage } from '../lib/containers.mjs';

const RELEASE = 'bookworm';
const RUST_RELEASE = 'trixie'; // its backports have a Rust that compiles this
const MIRROR = 'http://deb.debian.org/debian';
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'; // a machine behind a proxy of its own has that one's authority in it

const own = process.arch === 'arm64' ? 'arm64' : 'amd64';
const output = (command, ...args) => spawnSync(command, args, { encoding: 'utf8' }).stdout.trim();

/** Debian, and what a base image adds: `packages`, files by `add(root)`, and `environment`; `more` are arguments of mmdebstrap. */
async function build(tag, packages, environment, add = () => {}, { release = RELEASE, more = [] } = {}) {
  if (spawnSync('mmdebstrap', ['--version'], { stdio: 'ignore' }).status !== 0) throw new Problem('stand-ins need mmdebstrap (Debian: apt-get install mmdebstrap)');
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-stand-in-'));
  const root = join(folder, 'root');
  try {
    await run('mmdebstrap', ['--quiet', '--mode=root', '--variant=minbase', `--include=${['ca-certificates', ...packages].join(',')}`, ...more, release, root, ...(release === RELEASE ? [] : ['', '-backports'].map((suite) => `deb ${MIRROR} ${release}${suite} main`))], { quiet: true });
    cpSync(AUTHORITIES, join(root, AUTHORITIES));
    add(root);
    const lines = Object.entries({ ...environment, SSL_CERT_FILE: AUTHORITIES, NODE_EXTRA_CA_CERTS: AUTHORITIES }).map(([name, value]) => `ENV ${name}=${value}`);
    writeFileSync(join(folder, 'Containerfile'), ['FROM scratch', 'COPY . /', ...lines, 'CMD ["/bin/sh"]', ''].join('\n'));
    await buildImage({ file: join(folder, 'Containerfile'), context: root, tag, quiet: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return tag;
}

/** What docker.io/library/rust is: a compiler for C, and rustup with one toolchain. */
const rust = (tag) => build(tag, ['gcc', 'libc6-dev'], { RUSTUP_HOME: '/usr/local/rustup', CARGO_HOME: '/usr/local/cargo', PATH: '/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }, (root) => {
  const toolchain = realpathSync(output('rustc', '--print', 'sysroot'));
  const name = toolchain.split('/').pop();
  cpSync(toolchain, join(root, 'usr/local/rustup/toolchains', name), { recursive: true, filter: (path) => !/\/share\/doc\b/.test(path) });
  writeFileSync(join(root, 'usr/local/rustup/settings.toml'), `default_toolchain = "${name}"\nprofile = "minimal"\nversion = "12"\n`);
  const cargoHome = process.env.CARGO_HOME || join(homedir(), '.cargo');
  cpSync(join(cargoHome, 'bin'), join(root, 'usr/local/cargo/bin'), { recursive: true, verbatimSymlinks: true });
});

/** Rust as Debian has it, with the standard library of another architecture. */
const rustFor = (arch) => (tag) => build(tag, ['gcc', 'libc6-dev', 'rustc', 'cargo', `libstd-rust-dev:${arch}`], {}, undefined, {
  release: RUST_RELEASE, more: [`--architectures=${own},${arch}`, `--aptopt=APT::Default-Release "${RUST_RELEASE}-backports"`],
});

/** What docker.io/library/node is: node and npm. */
const node = (tag) => build(tag, ['libstdc++6'], { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }, (root) => {
  const npm = dirname(dirname(realpathSync(output('sh', '-c', 'command -v npm'))));
  if (!existsSync(join(npm, 'package.json'))) throw new Problem(`${npm} is not npm`);
  cpSync(process.execPath, join(root, 'usr/local/bin/node'));
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  writeFileSync(join(root, 'usr/local/bin/npm'), '#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/npm-cli.js "$@"\n', { mode: 0o755 });
});

/** Makes both, for images of an architecture, and gives the build arguments that name them. */
export async function standIns(arch) {
  const make = arch === own ? rust : rustFor(arch);
  return { RUST_IMAGE: await make(`localhost/vestibule-stand-in-rust:${arch}`), NODE_IMAGE: await node('localhost/vestibule-stand-in-node:dev') };
}
