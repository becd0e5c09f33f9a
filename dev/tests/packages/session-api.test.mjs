// The packages of the session API: their contents. The npm package is installed from its file into an empty project,
// and the program in its manual asks a real session service.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import { PACKAGES_PYTHON } from '../../packages.mjs';
import { startProvider, startService } from '../examples/service.mjs';
import { contents, LICENCE, manualBlock, npmProject, packageFile, run, VERSION } from './project.mjs';

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
});
