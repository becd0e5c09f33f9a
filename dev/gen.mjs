// `make gen`: writes all generated files again. `--check` fails if one was out of date.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { writePage } from '../bench/page/page.mjs';
import { makeChart } from './chart.mjs';
import { buildServices, cargoBuild, endOnErrors, installPackages, Problem, run } from './lib/build.mjs';
import { MADE, writeMonitoring } from './monitoring.mjs';
import { binary, ROOT } from './stack.mjs';

const BEGIN = '<!-- settings: made by `make gen` -->';
const END = '<!-- /settings -->';
const GENERATED = ['proto/src/gen', 'auth-edge/src/gateway/ext_authz/gen', 'web/src/gen', 'docs/settings.md', 'docs/performance.md', 'k8s/chart/files', 'k8s/chart/README.md', ...MADE];
const check = process.argv.includes('--check');
const say = (text) => process.stdout.write(`${text}\n`);

/** The names and content hashes of all generated files. */
function snapshot() {
  const files = GENERATED.filter((path) => existsSync(join(ROOT, path)));
  const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...files], { cwd: ROOT, encoding: 'utf8' });
  const there = names.trim().split('\n').filter((name) => existsSync(join(ROOT, name)));
  const hashes = execFileSync('git', ['hash-object', '--', ...there], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  return new Map(there.map((name, at) => [name, hashes[at]]));
}

function settingsTables() {
  const file = join(ROOT, 'docs/settings.md');
  const text = readFileSync(file, 'utf8');
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Problem(`docs/settings.md needs the lines ${BEGIN} and ${END}`);
  const tables = ['auth-edge', 'session-svc'].map((name) => {
    const table = execFileSync(binary(name), ['--settings-table'], { encoding: 'utf8', env: {} }).trim();
    return `## ${name}\n\n${table}\n`;
  });
  writeFileSync(file, `${text.slice(0, begin)}${BEGIN}\n\n${tables.join('\n')}\n${text.slice(end)}`);
}

endOnErrors();
const before = snapshot();
say('proto: Rust');
for (const example of ['gen', 'gen_ext_authz']) {
  await cargoBuild(['--example', example]);
  await run(join(binary('examples'), example), []);
}
say('proto: TypeScript');
await installPackages('web', say);
await run('npm', ['run', '--silent', 'gen'], { cwd: join(ROOT, 'web') });
say('docs: performance');
writePage();
say('docs, k8s: metrics, objectives, dashboard');
await writeMonitoring(say);
say('docs: settings');
await buildServices(say);
settingsTables();
say('k8s: the Helm chart');
await makeChart(say);
const after = snapshot();
const changed = [...new Set([...before.keys(), ...after.keys()])].filter((name) => before.get(name) !== after.get(name));
if (check && changed.length > 0) throw new Problem(`generated files were out of date (now written, commit them):\n  ${changed.join('\n  ')}`);
say(changed.length > 0 ? `written: ${changed.join(', ')}` : 'nothing changed');
