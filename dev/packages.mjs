// `make packages`: builds the npm and PyPI packages in target/packages, as a release publishes them. The crate is
// `proto/` itself.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { endOnErrors, installPackages, run } from './lib/build.mjs';
import { fromPypi } from './lib/pypi.mjs';
import { ROOT } from './stack.mjs';

/** Where the packages are. */
export const PACKAGES = join(ROOT, 'target/packages');
/** The Python environment that builds and checks packages. */
export const PACKAGES_PYTHON = join(ROOT, '.cache/packages');

/** What callers of the session API need; the fourth file is for browsers. */
const PROTO = ['error_reason', 'session', 'session_service'].map((name) => `session/v1/${name}.proto`);
const PYTHON_PACKAGE = 'vestibule_session_api';
const say = (text) => process.stdout.write(`${text}\n`);

/** Changes all files of a folder whose names end so. */
function rewrite(folder, ending, change) {
  for (const name of readdirSync(folder).filter((file) => file.endsWith(ending))) {
    writeFileSync(join(folder, name), change(readFileSync(join(folder, name), 'utf8')));
  }
}

/** Copies a package's own files and the licence to a folder of its own, adds what `make` writes there, and packs it. */
async function pack(stage, source, files, make, finish) {
  mkdirSync(stage);
  for (const name of files) cpSync(join(ROOT, source, name), join(stage, name), { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'));
  await make(stage);
  await finish(stage);
}

const npmPack = (out) => (cwd) => run('npm', ['pack', '--silent', '--pack-destination', out], { cwd, quiet: true });

/** The session library of web applications. */
export async function session(stage, out) {
  const compile = async () => {
    const [dist, cwd] = [join(stage, 'dist'), join(ROOT, 'web')];
    await run('npx', ['--no-install', 'vite', 'build', '--config', 'session/vite.config.ts', '--outDir', dist, '--logLevel', 'warn'], { cwd, quiet: true });
    await run('npx', ['--no-install', 'tsc', '-p', 'session', '--outDir', dist], { cwd, quiet: true });
    // Node's way to resolve modules, which TypeScript follows with `nodenext`, wants complete names.
    rewrite(dist, '.d.ts', (text) => text.replace(/(from "\.\/[\w-]+)"/g, '$1.js"'));
  };
  await pack(stage, 'web/session', ['package.json', 'README.md'], compile, npmPack(out));
}

/** The session API for TypeScript: what protoc-gen-es makes, behind one entry. */
async function typescript(stage, out) {
  const generate = async () => {
    const buf = join(ROOT, 'web/node_modules/.bin/buf');
    const cwd = join(ROOT, 'sdk/typescript');
    await run(buf, ['generate', '../../proto', ...PROTO.flatMap((name) => ['--path', `../../proto/${name}`]), '--output', stage], { cwd, quiet: true });
    await run(buf, ['generate', 'proto', '--output', stage], { cwd, quiet: true });
    const entry = [...PROTO, 'google/rpc/error_info.proto'].map((name) => `export * from "./${name.replace('.proto', '_pb.js')}";\n`).join('');
    for (const name of ['index.js', 'index.d.ts']) writeFileSync(join(stage, 'dist', name), entry);
  };
  await pack(stage, 'sdk/typescript', ['package.json', 'README.md'], generate, npmPack(out));
}

/** The session API for Python: messages, stubs and their types, under a name that no other package has. */
async function python(stage, out) {
  const bin = join(PACKAGES_PYTHON, 'bin');
  const protoc = (files, ...kinds) => run(join(bin, 'python'), ['-m', 'grpc_tools.protoc', '-I', '.', ...kinds.map((kind) => `--${kind}_out=${stage}`), ...files],
    { cwd: join(ROOT, 'proto'), env: { ...process.env, PATH: `${bin}:${process.env.PATH}` }, quiet: true });
  const generate = async () => {
    await protoc(PROTO, 'python', 'mypy');
    await protoc(PROTO.slice(-1), 'grpc_python', 'mypy_grpc');
    const made = join(stage, 'session/v1');
    for (const ending of ['.py', '.pyi']) rewrite(made, ending, (text) => text.replace(/^from session\.v1 import/gm, `from ${PYTHON_PACKAGE}.v1 import`));
    cpSync(made, join(stage, PYTHON_PACKAGE, 'v1'), { recursive: true });
  };
  await pack(stage, 'sdk/python', ['pyproject.toml', 'README.md', PYTHON_PACKAGE], generate,
    (cwd) => run(join(bin, 'python'), ['-m', 'build', '--no-isolation', '--outdir', out, '.'], { cwd, quiet: true }));
}

export async function buildPackages(report = say) {
  await installPackages('web', report);
  await fromPypi(PACKAGES_PYTHON, 'packages.txt', 'what builds and checks packages', report);
  report('building the packages');
  rmSync(PACKAGES, { recursive: true, force: true });
  mkdirSync(PACKAGES, { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), 'vestibule-packages-'));
  try {
    for (const build of [session, typescript, python]) await build(join(scratch, build.name), PACKAGES);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  endOnErrors();
  await buildPackages();
  say(`written: ${readdirSync(PACKAGES).join(', ')} in target/packages`);
}
