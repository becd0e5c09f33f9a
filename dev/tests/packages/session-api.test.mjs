// The packages of the session API: npm, PyPI and the crate. Each is installed from its file into an empty project, and
// the program in its manual asks a real session service.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import { PACKAGES_PYTHON } from '../../packages.mjs';
import { ROOT } from '../../stack.mjs';
import { startProvider, startService } from '../examples/service.mjs';
import { contents, folder, LICENCE, manualBlock, npmProject, packageFile, run, VERSION } from './project.mjs';

const EXAMPLE = 'examples/session-api/typescript'; // its installed packages have a gRPC client and the compiler
const MESSAGES = ['error_reason', 'session', 'session_service'];
const MISSING = '0'.repeat(32);
const started = promisify(execFile);
let provider;
let service;
let handle;

/** Runs the program of a manual for a handle, and returns what it prints. */
const ask = async (address, name, command, ...args) => (await started(command, [...args, name], { env: { ...process.env, SESSION_SVC: address } })).stdout.trim();

const npm = npmProject(packageFile(`vestibule-session-api-${VERSION}.tgz`), EXAMPLE);

before(async () => {
  provider = await startProvider();
  service = await startService(provider.url, 'memory:');
  const load = (name) => import(join(npm, 'node_modules', name));
  const [{ SessionService }, { createClient }, { createGrpcTransport }] = await Promise.all(['@vestibule/session-api/dist/index.js', '@connectrpc/connect/dist/esm/index.js', '@connectrpc/connect-node/dist/esm/index.js'].map(load));
  const sessions = createClient(SessionService, createGrpcTransport({ baseUrl: service.url }));
  handle = (await sessions.createSession({ issuer: provider.url, user: JSON.stringify({ sub: 'ada' }) })).session.handle;
});
after(async () => {
  await service?.stop();
  await provider?.stop();
});

describe('npm', () => {
  const home = join(npm, 'node_modules/@vestibule/session-api');

  test('it holds the generated code, its types, manual and licence, and nothing else', () => {
    const { names, bytes } = contents(packageFile(`vestibule-session-api-${VERSION}.tgz`));
    const code = ['index', 'google/rpc/error_info_pb', ...MESSAGES.map((name) => `session/v1/${name}_pb`)];
    assert.deepEqual(names, ['LICENSE', 'README.md', 'package.json', ...code.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`])].sort());
    assert.ok(bytes < 40_000, `${bytes} bytes`);
    const { version, license } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
    assert.deepEqual([version, license, readFileSync(join(home, 'LICENSE'), 'utf8')], [VERSION, 'Apache-2.0', LICENCE]);
  });

  test('the program in its manual compiles, and looks a session up', async () => {
    writeFileSync(join(npm, 'main.mts'), manualBlock(join(home, 'README.md'), 'ts'));
    run(join(npm, 'node_modules/.bin/tsc'), ['--strict', '--target', 'es2023', '--module', 'nodenext', '--types', 'node', 'main.mts'], { cwd: npm });
    const program = [process.execPath, join(npm, 'main.mjs')];
    assert.equal(await ask(service.url, handle, ...program), 'ada');
    assert.equal(await ask(service.url, MISSING, ...program), 'no answer: ERR_MISSING_SESSION');
  });
});

describe('PyPI', () => {
  const project = folder();
  const python = join(project, 'venv/bin/python');
  const wheel = packageFile('.whl');
  const tool = (name) => join(PACKAGES_PYTHON, 'bin', name);

  test('both files hold the generated code, its types and the licence, and their manual can be shown', () => {
    const code = [...MESSAGES.map((name) => `${name}_pb2`), 'session_service_pb2_grpc'].flatMap((name) => [`v1/${name}.py`, `v1/${name}.pyi`]);
    const own = ['__init__.py', 'py.typed', 'v1/__init__.py', ...code].map((name) => `vestibule_session_api/${name}`);
    const source = contents(packageFile('.tar.gz'));
    assert.deepEqual(source.names, [...own, 'LICENSE', 'PKG-INFO', 'README.md', 'pyproject.toml'].sort());
    const listed = run(tool('python'), ['-c', 'import sys, zipfile; print("\\n".join(zipfile.ZipFile(sys.argv[1]).namelist()))', wheel]).trim().split('\n');
    const about = ['METADATA', 'RECORD', 'WHEEL', 'licenses/LICENSE'].map((name) => `vestibule_session_api-${VERSION}.dist-info/${name}`);
    assert.deepEqual(listed.sort(), [...own, ...about].sort());
    assert.ok(source.bytes < 60_000, `${source.bytes} bytes`);
    const metadata = run(tool('python'), ['-c', 'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())', wheel, about[0]]);
    for (const line of [`Version: ${VERSION}`, 'License-Expression: Apache-2.0', 'License-File: LICENSE']) assert.ok(metadata.includes(`${line}\n`), line);
    run(tool('twine'), ['check', '--strict', wheel, packageFile('.tar.gz')]);
  });

  test('the program in its manual has right types, and looks a session up', async () => {
    run('python3', ['-m', 'venv', join(project, 'venv')]);
    const types = readFileSync(join(ROOT, 'dev/tests/packages.txt'), 'utf8').split('\n').filter((line) => line.startsWith('types-'));
    run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', wheel, ...types]);
    writeFileSync(join(project, 'main.py'), manualBlock(join(ROOT, 'sdk/python/README.md'), 'python'));
    const check = () => run(tool('mypy'), ['--strict', '--python-executable', python, 'main.py'], { cwd: project });
    check();
    const program = [python, join(project, 'main.py')];
    assert.equal(await ask(service.address, handle, ...program), 'ada');
    assert.match(await ask(service.address, MISSING, ...program), /^no answer: \w/);
    const right = readFileSync(join(project, 'main.py'), 'utf8');
    writeFileSync(join(project, 'main.py'), right.replace('handle=sys', 'handel=sys'));
    assert.throws(check, /Unexpected keyword argument "handel"/);
  });
});

describe('crate', () => {
  const target = resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target');
  const cargo = (args, options) => run('cargo', [...args, '--target-dir', target], options);
  const NAME = 'vestibule-session-api';

  test('it holds its sources, messages, manual and licence, and nothing else', () => {
    const listed = run('cargo', ['package', '--list', '--allow-dirty', '-p', NAME], { cwd: ROOT }).trim().split('\n');
    const expected = ['.cargo_vcs_info.json', 'Cargo.lock', 'Cargo.toml', 'Cargo.toml.orig', 'LICENSE', 'README.md', 'examples/session_api.rs'];
    const sources = run('git', ['ls-files', 'proto/src', 'proto/session'], { cwd: ROOT }).trim().split('\n').map((name) => name.slice('proto/'.length));
    assert.deepEqual(listed.sort(), [...expected, ...sources].sort());
  });

  test('a registry would take it, and the program in its manual looks a session up', async () => {
    cargo(['publish', '--dry-run', '--allow-dirty', '-p', NAME], { cwd: ROOT });
    const crate = join(target, `package/${NAME}-${VERSION}`); // unpacked by cargo
    assert.equal(readFileSync(join(crate, 'LICENSE'), 'utf8'), LICENCE);
    const project = folder();
    cpSync(crate, join(project, 'crate'), { recursive: true });
    mkdirSync(join(project, 'src'));
    copyFileSync(join(ROOT, 'Cargo.lock'), join(project, 'Cargo.lock')); // the same versions
    writeFileSync(join(project, 'Cargo.toml'), `[package]\nname = "project"\nedition = "2024"\n\n[workspace]\n\n[dependencies]\ntokio = { version = "1", features = ["macros", "rt-multi-thread"] }\n${NAME} = { path = "crate" }\n`);
    writeFileSync(join(project, 'src/main.rs'), manualBlock(join(crate, 'README.md'), 'rust,no_run'));
    cargo(['build', '--quiet'], { cwd: project });
    const program = join(target, 'debug/project');
    assert.equal(await ask(service.url, handle, program), 'ada');
    await assert.rejects(ask(service.url, MISSING, program), /ErrMissingSession/);
  });
});
