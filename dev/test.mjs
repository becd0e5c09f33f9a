// `make test`: installs what the tests need, runs every suite and prints a count at the end.
//
//   node dev/test.mjs                       every suite.
//   node dev/test.mjs --only web,python     some suites.
//   node dev/test.mjs --only providers --write-docs   also writes docs/providers.md.
//   node dev/test.mjs --install             only installs what lint does not need; .ci/run starts it next to lint.
//
// Each suite shows its runner's own output. A suite that fails or runs no test counts as a failure, so no test is
// skipped silently. The last line is "N passed, N failed". The section "how much at once" sets the parallelism.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

import { buildServices, buildWeb, checkTools, installPackages, Problem, run } from './lib/build.mjs';
import { buildExamples, goPackages } from './lib/examples.mjs';
import { kubernetesTools } from './lib/helm.mjs';
import { fromPypi, proxiesFromPypi } from './lib/pypi.mjs';
import { tablesAreCurrent } from './lib/providers-table.mjs';
import { packagedTool } from './lib/tools.mjs';
import { buildVerifiers, goOidc, installVerifiers } from './lib/verify.mjs';
import { buildPackages, PACKAGES_PYTHON } from './packages.mjs';
import { ROOT } from './stack.mjs';

const VENV = join(ROOT, '.cache/python');
const PYTHON = join(VENV, 'bin/python');
const SUITE_LIMIT_MS = 40 * 60_000; // a cold build on two cores fits; ends a hanging suite
const NODE_TEST_LIMIT_MS = 15 * 60_000; // ends a hanging test, and a hanging file
const scratch = mkdtempSync(join(tmpdir(), 'vestibule-test-'));
const say = (text) => process.stdout.write(`\n== ${text}\n`);

// ---------------------------------------------------------------- what the tests need

const works = (command, args = ['--version']) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** Kustomize components need version 3.7; older kubectl has older ones. */
function canRender() {
  if (works('kustomize', ['version'])) return true;
  const { status, stdout } = spawnSync('kubectl', ['version', '--client', '--output=json'], { encoding: 'utf8' });
  return status === 0 && /"kustomizeVersion":\s*"v[4-9]/.test(stdout);
}

/** Debian's kubectl is too old to render components. */
async function kubectlFromNpm() {
  const { kubectl } = await kubernetesTools(say);
  process.env.PATH = `${dirname(kubectl)}:${process.env.PATH}`;
}

/** The module that docs/integrations/nginx.conf loads. */
const HEADERS_MORE = '/usr/lib/nginx/modules/ngx_http_headers_more_filter_module.so';

const NEEDS = {
  redis: { there: () => works('redis-server'), debian: ['redis-server'] },
  valkey: { there: () => works('valkey-server'), debian: ['valkey-server'] }, // Debian 13, or the backports of Debian 12
  faketime: { there: () => works('faketime'), debian: ['faketime'] },
  glewlwyd: { there: () => existsSync('/usr/bin/glewlwyd'), debian: ['glewlwyd'] },
  nginx: { there: () => works('nginx', ['-v']) && existsSync(HEADERS_MORE), debian: ['nginx-light', 'libnginx-mod-http-headers-more-filter'] },
  caddy: { there: () => works('caddy', ['version']), debian: ['caddy'] },
  haproxy: { there: () => works('haproxy', ['-v']), debian: ['haproxy'] },
  chromium: { there: () => ['chromium', 'chromium-headless-shell'].every((name) => existsSync(`/usr/bin/${name}`)), debian: ['chromium', 'chromium-headless-shell'] },
  firefox: { there: () => existsSync('/usr/bin/firefox-esr'), debian: ['firefox-esr'] },
  ip: { there: () => works('ip', ['-V']), debian: ['iproute2'] },
  certutil: { there: () => existsSync('/usr/bin/certutil'), debian: ['libnss3-tools'] },
  python: { there: () => works('python3', ['-c', 'import venv, ensurepip']), debian: ['python3', 'python3-venv'] },
  curl: { there: () => works('curl'), debian: ['curl'] }, // the commands of docs/kubernetes/application-teams.md
  openssl: { there: () => works('openssl', ['version']), debian: ['openssl'] },
  busybox: { there: () => existsSync('/bin/busybox'), debian: ['busybox-static'] },
  alertmanager: { there: () => works('prometheus-alertmanager'), debian: ['prometheus-alertmanager'] },
  promtool: { there: () => works('promtool'), debian: ['prometheus'] },
  go: {
    there: () => works('go', ['version']) && goPackages() && existsSync('/usr/bin/protoc-gen-go'),
    debian: ['golang-go', 'golang-google-grpc-dev', 'golang-google-genproto-dev', 'golang-goprotobuf-dev'],
  },
  goOidc: { there: () => works('go', ['version']) && goOidc(), debian: ['golang-go', 'golang-github-coreos-go-oidc-dev'] },
  rack: { there: () => works('ruby', ['-e', "%w[jwt rack/handler/webrick].each { |name| require name }"]), debian: ['ruby', 'ruby-jwt', 'ruby-rack', 'ruby-webrick'] },
  lemonldap: {
    there: () => existsSync('/usr/share/lemonldap-ng/portal/htdocs/index.psgi') && works('starman') && works('perl', ['-MGD::SecurityImage', '-MImage::Magick', '-MIO::String', '-MString::Random', '-e', '1']),
    debian: ['lemonldap-ng', 'starman', 'libgd-securityimage-perl', 'libimage-magick-perl', 'libio-string-perl', 'libstring-random-perl'],
  },
  doorkeeper: {
    there: () => works('puma', ['-V']) && works('ruby', ['-e', '%w[doorkeeper-openid_connect activerecord sqlite3].each { |name| gem name }']),
    debian: ['ruby-doorkeeper-openid-connect', 'ruby-activerecord', 'ruby-sqlite3', 'puma'],
  },
  podman: {
    there: () => ['podman', 'runc'].every((name) => works(name)) && existsSync('/usr/lib/podman/aardvark-dns') && existsSync('/bin/busybox'),
    debian: ['podman', 'runc', 'netavark', 'aardvark-dns', 'catatonit', 'iptables', 'busybox-static'],
  },
  kubectl: { there: canRender, install: kubectlFromNpm, say: 'kubectl 1.21 or newer, or kustomize 4 or newer (see kubernetes.io/docs/tasks/tools)' },
};

const outputOf = (command, args) => spawnSync(command, args, { encoding: 'utf8' }).stdout ?? '';
const isInstallable = (name) => /Candidate: (?!\(none\))/.test(outputOf('apt-cache', ['policy', name]));

/** Options that let one apt-get use this release's backports from the current mirror; the sources stay the same. */
async function withBackports(env) {
  const release = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const targets = outputOf('apt-get', ['indextargets', '--format', '$(REPO_URI) $(CODENAME) $(COMPONENT)', 'Created-By: Packages']);
  const [mirror] = targets.split('\n').map((line) => line.split(' ')).find(([, codename, component]) => codename === release && component === 'main') ?? [];
  if (!mirror) return [];
  const sources = join(scratch, 'apt-sources');
  cpSync('/etc/apt/sources.list.d', sources, { recursive: true });
  writeFileSync(join(sources, 'backports.list'), `deb ${mirror} ${release}-backports main\n`);
  const options = ['-o', `Dir::Etc::sourceparts=${sources}`, '-o', 'APT::Get::List-Cleanup=0'];
  await run('apt-get', [...options, 'update', '-q'], { env, quiet: true });
  return options;
}

async function provide(needs) {
  const missing = needs.filter((name) => !NEEDS[name].there());
  const packages = missing.flatMap((name) => NEEDS[name].debian ?? []);
  if (packages.length > 0 && process.getuid?.() === 0 && works('apt-get')) {
    say(`installing ${packages.join(' ')}`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '-q'], { env, quiet: true });
    const options = packages.every(isInstallable) ? [] : await withBackports(env);
    await run('apt-get', [...options, 'install', '-q', '-y', '--no-install-recommends', ...packages], { env, quiet: true });
  }
  for (const name of missing) await NEEDS[name].install?.();
  const still = missing.filter((name) => !NEEDS[name].there());
  if (still.length > 0) {
    const lines = still.map((name) => (NEEDS[name].debian ? `  apt-get install ${NEEDS[name].debian.join(' ')}` : `  ${NEEDS[name].say}`));
    throw new Problem(`The tests need these missing programs:\n${lines.join('\n')}`);
  }
}

const pythonPackages = () => fromPypi(VENV, 'requirements.txt', 'the Python packages of the tests', say);
const collector = () => fromPypi(join(ROOT, '.cache/collector'), 'collector.txt', 'a collector of traces', say);
const proxies = () => proxiesFromPypi(say);
const openbao = () => fromPypi(join(ROOT, '.cache/vault'), 'vault.txt', 'OpenBao', say);
const compose = () => fromPypi(join(ROOT, '.cache/compose'), 'compose.txt', 'podman-compose', say);
const packaging = () => fromPypi(PACKAGES_PYTHON, 'packages.txt', 'what builds and checks packages', say);
const judges = () => fromPypi(join(ROOT, '.cache/supply-chain'), 'supply-chain.txt', 'what judges bills of materials and workflows', say);
const react18 = () => installPackages('dev/tests/packages/react-18', say);
const typescriptExample = () => installPackages('examples/session-api/typescript', say);
const providersFromPypi = () => fromPypi(join(ROOT, '.cache/providers'), 'providers.txt', 'the providers and applications of PyPI', say);
const applicationsFromPypi = () => fromPypi(join(ROOT, '.cache/applications'), 'applications.txt', 'an application of PyPI', say);
const mcp = () => installPackages('dev/tests/mcp', say);
const providersFromNpm = () => installPackages('dev/tests/providers', say);

// ---------------------------------------------------------------- how much at once

// Most tests wait: for a lease, a failover, an idle timeout, a browser. So more run at once than there are cores.
const CORES = availableParallelism();
const TESTS_AT_ONCE = 3 * CORES; // Rust tests; .config/nextest.toml lists those that count as three
const AGAIN_MAX = 4; // files of a suite that run again, alone: a busy machine delays a test now and then, and a fault fails again
const AGAIN_TIMES = 2; // how often one of them runs again
const FILES_AT_ONCE = 2 * CORES; // files of a node suite

/** Files of node suites that run after all others and after the lanes below, each alone, with the reason. */
const SPARED_FILES = {
  'chaos.test.mjs': 'that everything is well again within seconds of a fault',
  'failover.test.mjs': 'how long requests fail while a master is replaced',
  'flood.test.mjs': 'how long sign-ins take under attack',
  'pods.test.mjs': 'requests that are refused while pods are replaced',
  'redis-memory.test.mjs': 'memory of a pod',
  'redis-pods.test.mjs': 'Sentinels replace a master that is only slow; how long calls are refused while one hands over',
  'rolling-restart.test.mjs': 'the slowest request of a restart',
  'slow-clients.test.mjs': 'memory, and how long others wait',
};

/** Files of half a minute or more run first: a long last one would run alone. */
const LONG_FILES = ['redis-pods.test.mjs', 'chaos.test.mjs', 'recipe-needs.test.mjs', 'store-outage.test.mjs', 'unread-answers.test.mjs', 'device-bound.spec.mjs', 'screens.spec.mjs', 'states.spec.mjs'];

// ---------------------------------------------------------------- running and counting

/** Runs a command and shows its output, at its end next to others. Returns the output and the exit code. */
function stream(command, args, { isOneOfMany = false, ...options } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, ...options, stdio: ['ignore', 'pipe', 'pipe'], timeout: SUITE_LIMIT_MS });
    let output = '';
    for (const [from, to] of [[child.stdout, process.stdout], [child.stderr, process.stderr]]) {
      from.setEncoding('utf8').on('data', (chunk) => {
        output += chunk;
        if (!isOneOfMany) to.write(chunk);
      });
    }
    child.on('error', (error) => resolve({ code: -1, output: `${output}${error.message}` }));
    child.on('close', (code) => {
      if (isOneOfMany) process.stdout.write(output);
      resolve({ code: code ?? -1, output });
    });
  });
}

const SAID_LINES = 20; // of a failed suite's last output, repeated under the summary
const SAID_CHARS = 600; // of one line
const NO_NEWS = /^\s*(?:at |\d+: |\}|generatedMessage:|operator:|code: 'ERR_(?:ASSERTION|TEST_FAILURE)'|$)/; // lines of stacks and of printed assertion objects

/** A runner's report of failed tests at the end of its output: each line once, without stacks. */
const saidOf = (output, begins) => {
  const at = output.lastIndexOf(begins);
  if (at < 0) return [];
  const lines = output.slice(at + begins.length).split('\n').filter((line) => !NO_NEWS.test(line));
  return [...new Set(lines)].slice(0, SAID_LINES).map((line) => line.slice(0, SAID_CHARS));
};

const sum = (text, pattern) => [...text.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0);

async function cargo() {
  const nextest = await packagedTool('cargo-nextest', say);
  const { code, output } = await stream(nextest, ['nextest', 'run', '--workspace', '--color', 'never', `--test-threads=${TESTS_AT_ONCE}`]);
  const [, ran = 0, passed = 0, skipped = 0] = /^ +Summary \[.*\] (?:\d+\/)?(\d+) tests? run: (\d+) passed.*?, (\d+) skipped$/m.exec(output)?.map(Number) ?? [];
  // an ignored test did not run: it counts as a failure
  return { code, said: saidOf(output, '     Summary ['), passed, failed: ran - passed + skipped };
}

async function nodeTests(cwd, folder, ending) {
  const there = existsSync(join(cwd, folder)) ? readdirSync(join(cwd, folder)).filter((name) => name.endsWith(ending)) : [];
  const files = [...LONG_FILES.filter((name) => there.includes(name)), ...there.filter((name) => !LONG_FILES.includes(name))];
  const [spared, most] = [true, false].map((is) => files.filter((name) => name in SPARED_FILES === is).map((name) => join(folder, name)));
  const results = await nodeFiles(cwd, most, FILES_AT_ONCE);
  if (spared.length > 0) await joinLanes?.();
  results.push(...await nodeFiles(cwd, spared, 1));
  const failed = results.filter(({ code }) => code !== 0);
  for (const result of failed.length <= AGAIN_MAX ? failed : []) {
    for (let times = 0; times < AGAIN_TIMES && result.code !== 0; times += 1) Object.assign(result, await nodeFile(cwd, result.file));
    process.stdout.write(`\n${result.file} failed, and ${result.code === 0 ? 'passed when it ran alone: it is flaky' : 'failed again alone'}\n`);
  }
  const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
  return { code: Math.max(...results.map(({ code }) => Math.abs(code))), said: results.flatMap(({ said }) => said), passed: total('passed'), failed: total('failed') };
}

/** Runs files in this order with a limit at once; node's own runner would sort them. */
async function nodeFiles(cwd, files, atOnce) {
  const waiting = [...files];
  const results = [];
  const lane = async () => {
    while (waiting.length > 0) results.push(await nodeFile(cwd, waiting.shift()));
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}

/**
 * A network of its own for each file of the browser suite: a pair of interfaces that nothing changes. Containers of
 * other suites add and remove interfaces of the machine, and browsers then end every request (ERR_NETWORK_CHANGED).
 */
const OWN_NETWORK = `ip link set lo up && ip link add fixed type veth peer name other && ip addr add 192.0.2.1/24 dev fixed
  ip link set fixed up && ip link set other up && ip route add default dev fixed && exec "$@"`;
const USES_A_REGISTRY = 'e2e/session-library.spec.mjs'; // it installs an application's packages
const hasOwnNetwork = (file) => file.startsWith('e2e/') && file !== USES_A_REGISTRY && works('unshare', ['--net', 'ip', 'link']);

let reports = 0;
async function nodeFile(cwd, file) {
  const report = join(scratch, `node-${(reports += 1)}.tap`);
  const args = ['--test', `--test-timeout=${NODE_TEST_LIMIT_MS}`, '--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=tap', `--test-reporter-destination=${report}`, file];
  const [command, ...before] = [...(hasOwnNetwork(file) ? ['unshare', '--net', 'sh', '-ec', OWN_NETWORK, 'sh'] : []), process.execPath];
  const { code, output } = await stream(command, [...before, ...args], { cwd, isOneOfMany: true });
  const tap = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const failed = sum(tap, /^# (?:fail|cancelled|skipped|todo) (\d+)$/gm);
  return { file, code, said: saidOf(output, 'failing tests:\n'), passed: sum(tap, /^# pass (\d+)$/gm), failed };
}

/** Providers and applications; the run's results make the tables of docs/providers.md. */
async function providers() {
  const found = join(scratch, 'providers');
  process.env.PROVIDERS_RESULTS = found;
  const result = await nodeTests(ROOT, 'dev/tests/providers', '.test.mjs');
  if (result.failed > 0 || result.code !== 0) return result;
  if (tablesAreCurrent(found, { write: values['write-docs'] })) return { ...result, passed: result.passed + 1 };
  if (values['write-docs']) {
    process.stdout.write('written: docs/providers.md\n');
    return result;
  }
  process.stdout.write('docs/providers.md differs from this run: `make providers` writes it\n');
  return { ...result, failed: result.failed + 1 };
}

async function vitest() {
  const report = join(scratch, 'vitest.json');
  const { code } = await stream('npx', ['--no-install', 'vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`], { cwd: join(ROOT, 'web') });
  if (!existsSync(report)) return { code: code || 1, passed: 0, failed: 0 };
  const counts = JSON.parse(readFileSync(report, 'utf8'));
  const failures = counts.testResults.flatMap(({ name, message, assertionResults }) => [
    ...(message ? [`${name}: ${message}`] : []),
    ...assertionResults.filter(({ status }) => status === 'failed').map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join(' ')}`),
  ]);
  const said = failures.flatMap((text) => text.split('\n').filter((line) => !NO_NEWS.test(line))).slice(0, SAID_LINES).map((line) => line.slice(0, SAID_CHARS));
  return { code, said, passed: counts.numPassedTests, failed: counts.numTotalTests - counts.numPassedTests };
}

async function unittest(folder) {
  await pythonPackages();
  const { code, output } = await stream(PYTHON, ['-m', 'unittest', '-v'], { cwd: join(ROOT, 'dev/tests', folder), env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } });
  const ran = sum(output, /^Ran (\d+) tests? in/gm);
  const bad = Math.min(ran, sum(output, /(?:failures|errors|skipped|unexpected successes)=(\d+)/g));
  return { code, said: saidOf(output.replace(/^(?:FAIL|ERROR): /m, '\nfirst failure:\n$&'), '\nfirst failure:\n'), passed: ran - bad, failed: bad };
}

// ---------------------------------------------------------------- the suites

/** Runs a step of several suites once: a second cargo would wait for another compilation. */
const once = (step) => {
  let taken;
  return () => (taken ??= step());
};

const services = once(() => buildServices(say));
const web = once(async () => {
  await installPackages('web', say);
  await buildWeb(say);
});
const provider = () => installPackages('dev/idp', say);

const bills = () => run(process.execPath, ['dev/sbom.mjs'], { quiet: true });

/**
 * The images as `make images` makes them, except for the programs' profile, which compiles in a third of the time.
 * Starts while other suites wait, with the cores they leave.
 */
const images = once(() => {
  process.env.IMAGE_TAG = 'test';
  return run('nice', ['-n', '10', process.execPath, 'dev/images.mjs'], { env: { ...process.env, CARGO_PROFILE: 'dev' }, quiet: true });
});

const examples = async () => {
  await pythonPackages();
  await buildExamples(say);
};

const SUITES = [
  { name: 'rust', what: 'Rust: units, stores on real Redis, services, product', needs: ['openssl', 'redis', 'valkey'], prepare: [provider, web], run: cargo },
  { name: 'web', what: 'web app: units, and a build within its size budget', prepare: [web], run: vitest },
  { name: 'run', what: 'make run', needs: ['redis'], prepare: [provider, web, services], run: () => nodeTests(ROOT, 'dev/tests/run', '.test.mjs') },
  { name: 'product', what: 'both programs with a real provider, and with random faults', needs: ['redis', 'valkey', 'faketime', 'busybox', 'python', 'nginx', 'caddy', 'haproxy', 'promtool', 'openssl', 'curl'], prepare: [provider, web, services, proxies, openbao], run: () => nodeTests(ROOT, 'dev/tests/product', '.test.mjs') },
  { name: 'settings', what: 'the settings of the Kubernetes manifests, read by the programs', needs: ['python', 'kubectl', 'openssl'], prepare: [services], run: () => unittest('kubernetes/programs') },
  { name: 'providers', what: 'real providers and applications, set up as the documents say', needs: ['python', 'glewlwyd', 'lemonldap', 'doorkeeper', 'nginx', 'caddy', 'promtool', 'alertmanager'], prepare: [provider, services, proxies, providersFromPypi, applicationsFromPypi, providersFromNpm], run: providers },
  { name: 'mcp', what: 'an MCP client that finds its way to an MCP server behind the edge', prepare: [provider, services, mcp], run: () => nodeTests(ROOT, 'dev/tests/mcp', '.test.mjs') },
  { name: 'python', what: 'the session API, external authorization and traces from Python', needs: ['python', 'openssl', 'redis'], prepare: [provider, services, collector], run: () => unittest('python') },
  { name: 'docs', what: 'the documents as a site: every page has its place, every link works', run: async () => { const { code } = await stream(process.execPath, ['dev/docs.mjs']); return { code, passed: Number(code === 0), failed: Number(code !== 0) }; } },
  { name: 'supply-chain', what: 'advisories, bills of materials, licences, the release', needs: ['python'], prepare: [bills, judges], run: () => nodeTests(ROOT, 'dev/tests/supply-chain', '.test.mjs') },
  { name: 'kubernetes', what: 'Kubernetes manifests', needs: ['python', 'kubectl', 'promtool'], run: () => unittest('kubernetes') },
  { name: 'examples', what: 'the examples of the session API: Rust, Python, TypeScript, Go', needs: ['python', 'go', 'openssl'], prepare: [services, examples], run: () => nodeTests(ROOT, 'dev/tests/examples', '.test.mjs') },
  { name: 'packages', what: 'the packages for npm, PyPI and crates.io, installed into empty projects', needs: ['python'], prepare: [services, react18, typescriptExample, () => buildPackages(say)], run: () => nodeTests(ROOT, 'dev/tests/packages', '.test.mjs') },
  { name: 'verify', what: 'the examples that verify assertions: eight frameworks, each with all attacks', needs: ['python', 'goOidc', 'rack'], prepare: [provider, services, () => buildVerifiers(say)], run: () => nodeTests(ROOT, 'dev/tests/verify', '.test.mjs') },
  { name: 'browser', what: 'real browsers on the whole stack', needs: ['chromium', 'firefox', 'certutil', 'faketime', 'openssl', 'ip'], prepare: [provider, web, services], run: () => nodeTests(join(ROOT, 'web'), 'e2e', '.spec.mjs') },
  { name: 'images', what: 'container images, what goes into them, and compose.yaml on real containers', needs: ['podman', 'redis', 'openssl'], prepare: [compose, images], run: () => nodeTests(ROOT, 'dev/tests/images', '.test.mjs') },
  { name: 'pods', what: 'the manifests as real pods', needs: ['podman', 'redis', 'openssl', 'kubectl'], prepare: [images], run: () => nodeTests(ROOT, 'dev/tests/pods', '.test.mjs') },
];

const { values } = parseArgs({ options: { only: { type: 'string' }, install: { type: 'boolean', default: false }, totals: { type: 'string' }, 'write-docs': { type: 'boolean', default: false } } });
const wanted = values.install ? [] : values.only?.split(',') ?? SUITES.map(({ name }) => name);
const unknown = wanted.filter((name) => !SUITES.some((suite) => suite.name === name));
if (unknown.length > 0) {
  process.stderr.write(`unknown suites ${unknown.join(', ')}; there are ${SUITES.map(({ name }) => name).join(', ')}\n`);
  process.exit(2);
}

/**
 * Suites without short time limits run next to the first others, in lanes: processes with low priority that print
 * their output at their end. Browsers and spared files wait for them, because a busy machine delays their deadlines.
 */
const LANES = {
  first: 'rust',
  last: 'browser',
  suites: [
    ['images', 'pods'],
    ['packages', 'verify', 'examples'],
    ['web', 'settings', 'providers', 'mcp', 'python', 'docs', 'supply-chain', 'kubernetes'],
  ],
};

const totals = [];
let joinLanes; // waits for the lanes, prints and counts them

/** Runs a suite and counts it; a suite that cannot run, or runs no test, counts as a failure. */
async function runSuite(suite) {
  say(`${suite.name}: ${suite.what}`);
  const begun = Date.now();
  let result;
  try {
    for (const step of suite.prepare ?? []) await step();
    result = await suite.run();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    result = { code: 1, said: error.message.split('\n').slice(0, SAID_LINES), passed: 0, failed: 0 };
  }
  const ran = result.passed + result.failed;
  if (ran === 0 || (result.code !== 0 && result.failed === 0)) {
    process.stdout.write(`${suite.name}: ${ran === 0 ? 'ran no test' : `its runner exited with code ${result.code}`}; this counts as a failure\n`);
    result.failed += 1;
  }
  totals.push({ name: suite.name, ...result, seconds: Math.round((Date.now() - begun) / 1000) });
}

/** Starts lanes of suites in other processes. Returns a function that waits for them, prints and counts. */
async function startLanes(lanes) {
  for (const step of [pythonPackages, provider, web]) await step(); // more than one process needs these
  const running = lanes.map((names, at) => {
    const file = join(scratch, `lane-${at}.json`);
    const child = spawn('nice', ['-n', '10', process.execPath, import.meta.filename, '--only', names.join(), '--totals', file], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const from of [child.stdout, child.stderr]) from.setEncoding('utf8').on('data', (chunk) => (output += chunk));
    const ended = new Promise((resolve) => child.on('error', resolve).on('close', resolve));
    return { names, file, ended, output: () => output };
  });
  return async () => {
    for (const { names, file, ended, output } of running) {
      await ended;
      process.stdout.write(output());
      const counted = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
      totals.push(...counted, ...names.filter((name) => !counted.some((total) => total.name === name)).map((name) => ({ name, passed: 0, failed: 1, seconds: 0 })));
    }
  };
}

/** Installs everything at once: it mostly waits for registries and disks. */
async function install() {
  await provide(Object.keys(NEEDS));
  const packages = ['dev/idp', 'dev/docs', 'dev/tests/providers', 'dev/tests/mcp', 'dev/tests/packages/react-18', 'examples/session-api/typescript'].map((folder) => installPackages(folder, say));
  await Promise.all([...packages, ...[pythonPackages, collector, proxies, openbao, compose, packaging, judges, providersFromPypi, applicationsFromPypi, () => installVerifiers(say)].map((step) => step())]);
}

try {
  if (values.install) await install();
  const chosen = wanted.map((wantedName) => SUITES.find(({ name }) => name === wantedName));
  if (chosen.some(({ name }) => name !== 'kubernetes')) checkTools();
  await provide([...new Set(chosen.flatMap(({ needs = [] }) => needs))]);
  const lanes = wanted.includes(LANES.first) && wanted.includes(LANES.last) ? LANES.suites.map((lane) => lane.filter((name) => wanted.includes(name))).filter((lane) => lane.length > 0) : [];
  for (const suite of chosen.filter(({ name }) => !lanes.flat().includes(name))) {
    if (suite.name === LANES.first) joinLanes = once(await startLanes(lanes));
    if (suite.name === LANES.last) await joinLanes?.();
    await runSuite(suite);
  }
} catch (error) {
  process.stderr.write(`\n${error.message}\n`);
  totals.push({ name: 'what the tests need', said: error.message.split('\n').slice(0, SAID_LINES), passed: 0, failed: 1, seconds: 0 });
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

if (values.totals) writeFileSync(values.totals, JSON.stringify(totals));
say('summary');
for (const { name, passed, failed, seconds } of totals) {
  process.stdout.write(`${name.padEnd(20)} ${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed ${String(seconds).padStart(6)} s\n`);
}
for (const { name, failed, said = [] } of totals) if (failed > 0 && said.length > 0) process.stdout.write(`\n${name}:\n${said.map((line) => `  ${line}\n`).join('')}`);
const count = (key) => totals.reduce((total, suite) => total + suite[key], 0);
process.stdout.write(`\n${count('passed')} passed, ${count('failed')} failed\n`);
process.exitCode = count('failed') === 0 ? 0 : 1;
