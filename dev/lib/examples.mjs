// Builds the examples of docs/session-api.md and says how to start them.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { binary, ROOT } from '../stack.mjs';
import { installPackages, run } from './build.mjs';

const SOURCES = join(ROOT, 'examples/session-api');
const MADE = join(ROOT, '.cache/examples');
const PYTHON = join(ROOT, '.cache/python/bin/python');
const GO_PACKAGES = '/usr/share/gocode'; // where Debian keeps the sources of Go packages
const STUBS = 'example.test/session/v1'; // the import path of the Go stubs

/** How to start each example: `{command, args, env}`. */
export const EXAMPLES = {
  rust: { command: join(binary('examples'), 'session_api'), args: [] },
  python: { command: PYTHON, args: [join(SOURCES, 'python/session_api.py')], env: { PYTHONPATH: join(MADE, 'python'), PYTHONDONTWRITEBYTECODE: '1' } },
  typescript: { command: process.execPath, args: [join(SOURCES, 'typescript/dist/session_api.js')] },
  go: { command: join(MADE, 'go/session_api'), args: [] },
};

/** The compiled TypeScript example; tests use its client too. */
export const TYPESCRIPT = join(SOURCES, 'typescript/dist/session_api.js');

/** Whether Go and the packages of the Go example are installed. */
export const goPackages = () => ['google.golang.org/grpc', 'google.golang.org/genproto', 'github.com/golang/protobuf']
  .every((name) => existsSync(join(GO_PACKAGES, 'src', name)));

/** Builds the examples that the services' build leaves out. The Python tests' virtual environment must exist. */
export async function buildExamples(say) {
  say('building the examples');
  const typescript = 'examples/session-api/typescript';
  await installPackages(typescript, say);
  await run('npm', ['run', '--silent', 'build'], { cwd: join(ROOT, typescript), quiet: true });
  rmSync(MADE, { recursive: true, force: true });
  await pythonStubs();
  await goProgram();
}

/** Runs protoc, which comes with Python's grpcio-tools. */
async function protoc(options, names) {
  const files = names.map((name) => `session/v1/${name}`);
  await run(PYTHON, ['-m', 'grpc_tools.protoc', '-I', '.', ...options, ...files], { cwd: join(ROOT, 'proto'), quiet: true });
}

async function pythonStubs() {
  const out = join(MADE, 'python');
  mkdirSync(out, { recursive: true });
  const names = readdirSync(join(ROOT, 'proto/session/v1')).filter((name) => name.endsWith('.proto'));
  await protoc([`--python_out=${out}`, `--grpc_python_out=${out}`], names);
}

async function goProgram() {
  const out = join(MADE, 'go/src/example.test');
  mkdirSync(out, { recursive: true });
  const own = ['error_reason.proto', 'session.proto', 'session_service.proto'];
  const packages = {
    ...Object.fromEntries(own.map((name) => [`session/v1/${name}`, STUBS])),
    'google/protobuf/duration.proto': 'github.com/golang/protobuf/ptypes/duration',
    'google/protobuf/timestamp.proto': 'github.com/golang/protobuf/ptypes/timestamp',
    'google/protobuf/field_mask.proto': 'google.golang.org/genproto/protobuf/field_mask',
  };
  const options = ['plugins=grpc', 'paths=source_relative', ...Object.entries(packages).map(([file, path]) => `M${file}=${path}`)];
  await protoc(['--plugin=protoc-gen-go=/usr/bin/protoc-gen-go', `--go_out=${options.join(',')}:${out}`], own);
  const env = { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOPATH: `${join(MADE, 'go')}:${GO_PACKAGES}` };
  const cwd = join(SOURCES, 'go');
  await run('go', ['vet', '.'], { cwd, env, quiet: true });
  await run('go', ['build', '-o', EXAMPLES.go.command, '.'], { cwd, env, quiet: true });
}
