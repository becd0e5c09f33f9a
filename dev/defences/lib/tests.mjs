// The tests of the switched tree: built once, run with one defence off or with none.
import { spawn, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';

import { Problem } from '../../lib/build.mjs';
import { Child } from '../../lib/child.mjs';
import { filterOf, targetOf } from './table.mjs';
import { PLACE, SWITCH } from './tree.mjs';

const AS_IT_IS_LIMIT_MS = 10 * 60_000; // all tests of one target that are named anywhere
const LIMIT_MS = 150_000; // a test that only fails by its own patience has waited a minute by then

const { [SWITCH]: _, ...ENVIRONMENT } = process.env;

/** Builds the test programs of these targets, whose packages' folders are known: target → {program, cwd}. */
export async function buildTests(tree, wanted, folders) {
  const named = wanted.map((target) => target.split('/')[1]);
  const chosen = new Set(named.flatMap((name) => (name === 'lib' ? ['--lib'] : [`--test=${name}`])));
  // The whole workspace, so that every dependency has the features it has elsewhere.
  const args = ['test', '--workspace', '--no-run', '--locked', '--message-format=json-render-diagnostics', ...chosen];
  const messages = await cargo(args, tree);
  const built = messages.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)).filter(({ executable, profile }) => executable && profile?.test);
  const programs = new Map();
  for (const wish of wanted) {
    const [cwd, name] = [join(tree, folders.get(wish)), wish.split('/')[1]];
    const found = built.find(({ manifest_path: manifest, target }) => dirname(manifest) === cwd && (name === 'lib' ? target.kind.includes('lib') : target.name === name));
    if (found) programs.set(wish, { program: found.executable, cwd });
  }
  const missing = wanted.filter((target) => !programs.has(target));
  if (missing.length > 0) throw new Problem(`cargo built no tests ${missing.join(', ')}`);
  return programs;
}

function cargo(args, cwd) {
  return new Promise((resolve, reject) => {
    const env = { ...ENVIRONMENT, CARGO_TARGET_DIR: join(PLACE, 'build') };
    const child = spawn('cargo', args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => { output += chunk; });
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(output) : reject(new Problem('the tree with its switches does not build'))));
  });
}

/** Runs built tests. */
export class Runner {
  constructor(programs) {
    this.programs = programs;
  }

  /** Whether a test's filter finds any. */
  has(test) {
    const { program, cwd } = this.programs.get(targetOf(test));
    const { stdout } = spawnSync(program, ['--list', '--format=terse', filterOf(test)], { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
    return /: test$/m.test(stdout ?? '');
  }

  /**
   * Runs tests of one target, with a defence off where one is given: how many passed, the names of those that failed, whether they
   * hang, and in `failure` what else was wrong.
   */
  async run(named, defence) {
    const { program, cwd } = this.programs.get(targetOf(named[0]));
    const env = {
      ...ENVIRONMENT, CARGO_MANIFEST_DIR: cwd, PROPTEST_DISABLE_FAILURE_PERSISTENCE: '1',
      ...(defence && { [SWITCH]: defence.id }),
    };
    let [passed, result] = [0, false];
    const failed = [];
    const child = new Child(named[0], program, named.map(filterOf), {
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
}

function failureOf({ passed, result, hangs, code, signal }) {
  if (hangs) return 'hangs';
  if (!result) return `ends with ${signal ?? `code ${code}`} and no result`;
  if (code !== 0) return `ends with code ${code}`;
  return passed === 0 ? 'runs nothing' : undefined;
}
