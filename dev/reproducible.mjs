// `make reproducible`: builds both programs and the web app twice from the last commit, and compares what comes out byte by byte.
//
//   node dev/reproducible.mjs                 everything: two release builds, about a quarter of an hour on two cores
//   node dev/reproducible.mjs --only web      programs, web
//   node dev/reproducible.mjs --keep          leaves both builds where they are, and says where
//
// The two differ in what must not count: folder and its length, folder of cargo's work, home of cargo, time zone, language, file mode
// mask, number of jobs. They share what has to be the same: compiler, C compiler, node, lock files, SOURCE_DATE_EPOCH.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

import { sourceEpoch, sourceRevision } from './images/source.mjs';
import { checkTools, Problem, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const { values } = parseArgs({ options: { only: { type: 'string', default: 'programs,web' }, keep: { type: 'boolean', default: false } } });
const PARTS = { programs, web };
// of the beginning: somebody may commit meanwhile
const [REVISION, EPOCH] = [sourceRevision(), sourceEpoch()];
const COMMIT = REVISION?.replace('-dirty', '');
const WORK = mkdtempSync(join(tmpdir(), 'vestibule-reproducible-'));
const say = (text) => process.stderr.write(`${text}\n`);

/** The surroundings of each build. */
const BUILDS = [
  { name: 'first', folder: 'a', umask: '022', env: { TZ: 'UTC', LC_ALL: 'C', CARGO_BUILD_JOBS: '2' } },
  { name: 'second', folder: 'another/and/a/longer/folder', umask: '027', env: { TZ: 'Pacific/Kiritimati', LC_ALL: 'C.UTF-8', CARGO_BUILD_JOBS: '1' } },
];

/** A home of cargo with the settings of this machine's and the crates it has downloaded. */
function cargoHome(folder) {
  const own = process.env.CARGO_HOME || join(homedir(), '.cargo');
  mkdirSync(folder, { recursive: true });
  for (const name of ['config.toml', 'config'].filter((file) => existsSync(join(own, file)))) cpSync(join(own, name), join(folder, name));
  if (existsSync(join(own, 'registry'))) symlinkSync(join(own, 'registry'), join(folder, 'registry'));
  return folder;
}

const inShell = (build, source, script, env = {}) => run('sh', ['-ec', `umask ${build.umask}\n${script}`], {
  cwd: source, quiet: true, env: { ...process.env, ...build.env, ...env, SOURCE_DATE_EPOCH: EPOCH },
});

/** auth-edge and session-svc, as the images have them. */
async function programs(build, source, to) {
  const env = { CARGO_TARGET_DIR: join(WORK, build.folder, 'made'), CARGO_HOME: cargoHome(join(WORK, build.folder, 'cargo')) };
  await inShell(build, source, `dev/images/programs.sh services "" "${to}"`, env);
}

/** The files a browser loads, compressed ones too. */
async function web(build, source, to) {
  await inShell(build, join(source, 'web'), `npm ci --no-audit --no-fund --loglevel=error && npm run --silent build && mkdir -p "${to}" && cp -R dist "${to}/pages"`);
}

const filesBelow = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)]));

/** Name, size and digest of every file below a folder. */
function digests(folder) {
  return new Map(filesBelow(folder).map((file) => {
    const bytes = readFileSync(file);
    return [relative(folder, file), { bytes, sha256: createHash('sha256').update(bytes).digest('hex') }];
  }));
}

/** One line for each file; the address of the first byte that differs, and how many do. */
function compare(first, second) {
  const names = [...new Set([...first.keys(), ...second.keys()])].sort();
  return names.map((name) => {
    const [one, other] = [first.get(name), second.get(name)];
    if (!one || !other) return { name, same: false, what: `only in the ${one ? 'first' : 'second'} build` };
    if (one.sha256 === other.sha256) return { name, same: true, what: `${one.sha256}  ${one.bytes.length} bytes` };
    const length = Math.min(one.bytes.length, other.bytes.length);
    let [at, count] = [-1, Math.abs(one.bytes.length - other.bytes.length)];
    for (let byte = 0; byte < length; byte += 1) if (one.bytes[byte] !== other.bytes[byte]) [at, count] = [at < 0 ? byte : at, count + 1];
    return { name, same: false, what: `${count} bytes differ, the first at ${at < 0 ? length : at}` };
  });
}

try {
  checkTools();
  const parts = values.only.split(',');
  const unknown = parts.filter((part) => !(part in PARTS));
  if (unknown.length > 0) throw new Problem(`no part is called ${unknown.join(', ')}; there are ${Object.keys(PARTS).join(', ')}`);
  if (COMMIT === undefined) throw new Problem('make reproducible builds the last commit: it needs a repository');
  if (REVISION !== COMMIT) say('the last commit is built, without the changes beside it');
  const made = [];
  for (const build of BUILDS) {
    const [source, to] = [join(WORK, build.folder, 'source'), join(WORK, build.folder, 'out')];
    mkdirSync(source, { recursive: true });
    execFileSync('tar', ['--extract', '--directory', source], { input: execFileSync('git', ['archive', COMMIT], { cwd: ROOT, maxBuffer: 1 << 30 }) });
    for (const part of parts) {
      say(`${build.name} build: ${part}`);
      await PARTS[part](build, source, to);
    }
    made.push(digests(to));
  }
  const rows = compare(...made);
  for (const { name, same, what } of rows) process.stdout.write(`${same ? 'same   ' : 'DIFFERS'}  ${name}  ${what}\n`);
  const different = rows.filter(({ same }) => !same).length;
  process.stdout.write(different > 0 ? `\n${different} of ${rows.length} files differ\n` : `\nreproducible: ${rows.length} files of ${COMMIT} are the same to the byte\n`);
  process.exitCode = different > 0 ? 1 : 0;
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  if (values.keep) say(`both builds: ${WORK}`);
  else rmSync(WORK, { recursive: true, force: true });
}
