// `make images`: builds the container images from programs of this machine, without a registry.
//
//   node dev/images.mjs                         all five images
//   node dev/images.mjs --only edge,web         some images
//   node dev/images.mjs --arch arm64            programs for another architecture (not the development provider)
//   node dev/images.mjs --again                 uses the programs of the last build
//   node dev/images.mjs --default               builds everything inside containers, as docker build does
//
// IMAGE_TAG names the tag (dev); CARGO_PROFILE=dev compiles faster, for tests. SOURCE_DATE_EPOCH is the time of files
// and images (the last commit). Prints a JSON object for each image: name, id, bytes, layers. Bills: `make sbom`.
import { cpSync, existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { IMAGES, imageName } from './images/names.mjs';
import { isStatic } from './images/elf.mjs';
import { buildNodeImage } from './images/node.mjs';
import { sourceEpoch, sourceRevision } from './images/source.mjs';
import { buildWeb, checkTools, endOnErrors, installPackages, Problem, run } from './lib/build.mjs';
import { buildImage, builderPlatform, findBuilder, inspectImage } from './lib/containers.mjs';
import { ROOT } from './stack.mjs';

const MAX_BYTES = 20 * 1000 * 1000; // the largest program allowed
const { values } = parseArgs({
  options: {
    only: { type: 'string', default: IMAGES.join(',') },
    arch: { type: 'string', default: process.arch === 'arm64' ? 'arm64' : 'amd64' },
    again: { type: 'boolean', default: false },
    default: { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',');
const stage = join(ROOT, 'target/images', values.arch);
const say = (text) => process.stderr.write(`${text}\n`);

/** The builds of this machine, by the stage of the Containerfile that each replaces. */
const PARTS = {
  programs: { of: ['edge', 'session-svc', 'web', 'one'], make: programs },
  pages: { of: ['web'], make: pages },
  provider: { of: ['dev-idp'], make: provider },
};

async function programs(folder) {
  const to = join(folder, 'programs');
  await pagesOfProgram();
  const env = { ...process.env, CARGO_TARGET_DIR: resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target') };
  const parts = { 'web-server': ['web'], services: ['edge', 'session-svc', 'one'] };
  for (const which of Object.keys(parts).filter((part) => parts[part].some((name) => wanted.includes(name)))) {
    say(`building ${which} for ${values.arch} (takes many minutes the first time)`);
    await run('dev/images/programs.sh', [which, values.arch, to], { env, quiet: true });
  }
  await run('dev/images/programs.sh', ['authorities', to], { quiet: true });
  for (const program of readdirSync(to).filter((name) => !/\.crt$|^licences$/.test(name)).map((name) => join(to, name))) {
    const name = basename(program);
    if (!isStatic(program)) throw new Problem(`${name} is not static, so it would not start in an empty image`);
    const { size } = statSync(program);
    if (size > MAX_BYTES && process.env.CARGO_PROFILE !== 'dev') throw new Problem(`${name} has ${(size / 1e6).toFixed(1)} MB; a program may have ${MAX_BYTES / 1e6} MB`);
  }
}

/** The web app for both places: the program `vestibule` contains one. */
async function pagesOfProgram() {
  await installPackages('web', say);
  await buildWeb(say);
}

async function pages(folder) {
  await pagesOfProgram();
  cpSync(join(ROOT, 'web/dist'), join(folder, 'source/web/dist'), { recursive: true });
}

async function provider(folder) {
  const source = join(folder, 'source/dev/idp');
  cpSync(join(ROOT, 'dev/idp'), source, { recursive: true, filter: (path) => !path.includes('node_modules') });
  await run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: source, quiet: true });
}

async function onThisMachine() {
  const contexts = {};
  for (const [part, { of, make }] of Object.entries(PARTS)) {
    if (!of.some((name) => wanted.includes(name))) continue;
    contexts[part] = join(stage, part);
    if (values.again && existsSync(contexts[part])) continue;
    rmSync(contexts[part], { recursive: true, force: true });
    await make(contexts[part]);
    await run('chmod', ['-R', 'a+rX,go-w', contexts[part]], { quiet: true });
  }
  return { contexts, args: wanted.includes('dev-idp') ? { NODE_IMAGE: await buildNodeImage() } : {} };
}

endOnErrors();
const unknown = wanted.filter((name) => !IMAGES.includes(name));
if (unknown.length > 0) throw new Problem(`unknown images ${unknown.join(', ')}; there are ${IMAGES.join(', ')}`);
if (!findBuilder()) throw new Problem('make images needs podman, buildah or docker (Debian: apt-get install podman)');
if (!values.default) checkTools();
const { contexts, args } = values.default ? { contexts: {}, args: {} } : await onThisMachine();
const revision = sourceRevision();
const built = [];
for (const name of wanted) {
  const tag = imageName(name);
  say(`image ${tag}`);
  await buildImage({
    file: 'Containerfile', context: '.', target: name, tag, contexts, epoch: sourceEpoch(), quiet: true,
    args: { ...args, ...builderPlatform() }, labels: revision && { 'org.opencontainers.image.revision': revision },
    cache: values.default, // a cache might hold an earlier replacement of a stage
    platform: name === 'dev-idp' && !values.default ? undefined : `linux/${values.arch}`,
  });
  built.push(await inspectImage(tag));
}
for (const image of built) process.stdout.write(`${JSON.stringify(image)}\n`);
