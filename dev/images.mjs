// `make images`: the container images, built from programs built on this machine; no registry is used.
//
//   node dev/images.mjs                         all four
//   node dev/images.mjs --only edge,web         some
//   node dev/images.mjs --arch arm64            programs for another architecture (the development provider stays this machine's)
//   node dev/images.mjs --default               the other way: everything inside containers, as docker build does it
//   node dev/images.mjs --default --stand-in    the same where no registry is reached (dev/images/stand-in.mjs)
//
// IMAGE_TAG names the tag (dev). SOURCE_DATE_EPOCH is the time written on files and images: the last commit's. The last lines say what
// was built, one JSON object each: name, id, bytes, layers. Bills of materials: `make sbom`.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { IMAGES, imageName } from './images/names.mjs';
import { isStatic } from './images/elf.mjs';
import { buildNodeImage } from './images/node.mjs';
import { standIns } from './images/stand-in.mjs';
import { buildWeb, checkTools, installPackages, Problem, run } from './lib/build.mjs';
import { buildImage, builderPlatform, findBuilder, inspectImage } from './lib/containers.mjs';
import { ROOT } from './stack.mjs';

const MAX_BYTES = 20 * 1000 * 1000; // what a program may weigh
const { values } = parseArgs({
  options: {
    only: { type: 'string', default: IMAGES.join(',') },
    arch: { type: 'string', default: process.arch === 'arm64' ? 'arm64' : 'amd64' },
    default: { type: 'boolean', default: false },
    'stand-in': { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',');
const stage = join(ROOT, 'target/images', values.arch);
const say = (text) => process.stderr.write(`${text}\n`);

const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim();
const epoch = process.env.SOURCE_DATE_EPOCH || git('log', '-1', '--format=%ct') || '0';
const revision = git('status', '--porcelain') ? `${git('rev-parse', 'HEAD')}-dirty` : git('rev-parse', 'HEAD');

/** Builds what the images are made of on this machine, and says in the place of which stage each of it goes. */
async function onThisMachine() {
  checkTools();
  rmSync(stage, { recursive: true, force: true });
  const contexts = {};
  const programs = ['services', 'web-server'].filter((_, at) => [['edge', 'session-svc'], ['web']][at].some((name) => wanted.includes(name)));
  const folder = join(stage, 'programs/programs');
  const env = { ...process.env, CARGO_TARGET_DIR: resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target') };
  for (const which of programs) {
    say(`building ${which} for ${values.arch} (release; the first time this takes many minutes)`);
    await run('dev/images/programs.sh', [which, values.arch, folder], { env, quiet: true });
  }
  if (programs.length > 0) {
    await run('dev/images/programs.sh', ['authorities', folder], { quiet: true });
    contexts.programs = join(stage, 'programs');
  }
  if (wanted.includes('web')) {
    await installPackages('web', say);
    await buildWeb(say);
    contexts.pages = join(stage, 'pages');
    cpSync(join(ROOT, 'web/dist'), join(contexts.pages, 'source/web/dist'), { recursive: true });
  }
  const args = {};
  if (wanted.includes('dev-idp')) {
    contexts.provider = join(stage, 'provider');
    const source = join(contexts.provider, 'source/dev/idp');
    mkdirSync(source, { recursive: true });
    cpSync(join(ROOT, 'dev/idp'), source, { recursive: true, filter: (path) => !path.includes('node_modules') });
    await run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: source, quiet: true });
    args.NODE_IMAGE = await buildNodeImage();
  }
  for (const path of Object.values(contexts)) spawnSync('chmod', ['-R', 'a+rX,go-w', path]);
  return { contexts, args };
}

/** Inside containers: the base images are the Containerfile's own, or stand-ins. */
const inContainers = async () => ({ contexts: {}, args: values['stand-in'] ? await standIns() : {} });

function check(folder) {
  for (const name of ['auth-edge', 'session-svc', 'static-web-server']) {
    const program = join(folder, name);
    const size = statSync(program, { throwIfNoEntry: false })?.size ?? 0;
    if (size > MAX_BYTES) throw new Problem(`${name} weighs ${(size / 1e6).toFixed(1)} MB; a program may weigh ${MAX_BYTES / 1e6} MB`);
    if (size > 0 && !isStatic(program)) throw new Problem(`${name} is not static, so it would not start in an empty image`);
  }
}

try {
  const unknown = wanted.filter((name) => !IMAGES.includes(name));
  if (unknown.length > 0) throw new Problem(`no image is called ${unknown.join(', ')}; there are ${IMAGES.join(', ')}`);
  if (!findBuilder()) throw new Problem('make images needs podman, buildah or docker (Debian: apt-get install podman)');
  const { contexts, args } = values.default ? await inContainers() : await onThisMachine();
  if (contexts.programs) check(join(contexts.programs, 'programs'));
  const built = [];
  for (const name of wanted) {
    const tag = imageName(name);
    say(`image ${tag}`);
    await buildImage({
      file: 'Containerfile', context: '.', target: name, tag, contexts, epoch, quiet: true,
      args: { ...args, ...(revision && { REVISION: revision }), ...builderPlatform() },
      platform: name === 'dev-idp' && !values.default ? undefined : `linux/${values.arch}`,
    });
    built.push(await inspectImage(tag));
  }
  for (const image of built) process.stdout.write(`${JSON.stringify(image)}\n`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
