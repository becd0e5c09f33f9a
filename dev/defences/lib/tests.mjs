// The tests of the switched tree: built once, run with one defence off or with none.
import { spawn, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';

import { Problem } from '../../lib/build.mjs';
import { Child } from '../../lib/child.mjs';
import { filterOf, packageOf } from './table.mjs';
import { PLACE, SWITCH } from './tree.mjs';

const AS_IT_IS_LIMIT_MS = 10 * 60_000; // all tests of one program that are named anywhere
const LIMIT_MS = 150_000; // a test that only fails by its own deadline has waited a minute by then

const { [SWITCH]: _, ...ENVIRONMENT } = process.env;

/** Where both halves of `make defences` build. */
export const BUILD = join(PLACE, 'build');

/** Builds the test programs of these packages, whose folders are known: package → [{program, cwd, names}], unit tests first. */
export async function buildTests(tree, wanted, folders) {
  // The whole workspace, so that every dependency has the features it has elsewhere.
  const args = ['test', '--workspace', '--no-run', '--locked', '--message-format=json-render-diagnostics', '--lib', '--tests'];
  const messages = await cargo(args, tree);
  const built = messages.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)).filter(({ executable, profile }) => executable && profile?.test);
  return new Map(wanted.map((name) => {
    const cwd = join(tree, folders.get(name));
    const own = built.filter(({ manifest_path: manifest }) => dirname(manifest) === cwd);
    own.sort((one, other) => other.target.kind.includes('lib') - one.target.kind.includes('lib'));
    return [name, own.map(({ executable: program }) => ({ program, cwd, names: namesIn(program, cwd) }))];
  }));
}

function namesIn(program, cwd) {
  const { stdout } = spawnSync(program, ['--list', '--format=terse'], { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
  return [...(stdout ?? '').matchAll(/^(.*): test$/gm)].map(([, name]) => name);
}

function cargo(args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn('cargo', args, { cwd, env: { ...ENVIRONMENT, CARGO_TARGET_DIR: BUILD }, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => { output += chunk; });
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(output) : reject(new Problem('the tree with its switches does not build'))));
  });
}

/** The programs that hold a test of this filter. */
export const programsOf = (test, programs) => programs.get(packageOf(test)).filter(({ names }) => names.some((name) => name.includes(filterOf(test))));

/**
 * Runs tests of one program, with a defence off where one is given: how many passed, the names of those that failed, whether they hang,
 * and in `failure` what else was wrong.
 */
export async function runTests({ program, cwd }, filters, defence) {
  const env = {
    ...ENVIRONMENT, CARGO_MANIFEST_DIR: cwd, PROPTEST_DISABLE_FAILURE_PERSISTENCE: '1',
    ...(defence && { [SWITCH]: defence.id }),
  };
  let [passed, result] = [0, false];
  const failed = [];
  const child = new Child(defence?.id ?? program, program, filters, {
    env, cwd,
    onLine: (line) => {
      const [, name] = /^test (\S+)(?: - should panic)? \.\.\. FAILED/.exec(line) ?? [];
      if (name) failed.push(name);
      const [, count] = /^test result: .*?(\d+) passed/.exec(line) ?? [];
      if (count) [passed, result] = [Number(count), true];
    },
  });
  let hangs = false;
  const limit = setTimeout(() => {
    hangs = true;
    child.signal('SIGKILL');
  }, defence ? LIMIT_MS : AS_IT_IS_LIMIT_MS);
  const { code, signal } = await child.exited;
  clearTimeout(limit);
  return { passed, failed, hangs, failure: failureOf({ passed, result, hangs, code, signal }) };
}

function failureOf({ passed, result, hangs, code, signal }) {
  if (hangs) return 'hangs';
  if (!result) return `ends with ${signal ?? `code ${code}`} and no result`;
  if (code !== 0) return `ends with code ${code}`;
  return passed === 0 ? 'runs nothing' : undefined;
}
