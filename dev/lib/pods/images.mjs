// The images the pods are made of: this version's, built in one of several ways, the version before it, and Redis.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildRedisImage, REDIS_IMAGE } from '../../images/redis.mjs';
import { ROOT } from '../../stack.mjs';
import { Problem, run } from '../build.mjs';

const PRODUCT = ['edge', 'session-svc', 'web'];
const ALL = [...PRODUCT, 'dev-idp'];

/** What "the version before this one" is while there is no release. */
const PREVIOUS = '5fbf3ff';

const nameOf = (name, tag) => `localhost/vestibule-${name}:${tag}`;
const isThere = (image) => spawnSync('podman', ['image', 'exists', image], { stdio: 'ignore' }).status === 0;
const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim();

const make = (tag, args = [], env = {}) => run(process.execPath, ['dev/images.mjs', ...args], { quiet: true, env: { ...process.env, ...env, IMAGE_TAG: tag } });

/** How images are made, and by which tag they are known. */
const WAYS = {
  host: (tag) => make(tag),
  default: (tag) => make(tag, ['--default']),
  'default-stand-in': (tag) => make(tag, ['--default', '--stand-in']),
  debug: (tag) => make(tag, [], { CARGO_PROFILE: 'dev' }),
};

/** Builds the images one of these ways, or takes those of a tag: `tag:NAME`. Gives the tag. */
export async function images(way, say) {
  const given = /^tag:(.+)$/.exec(way)?.[1];
  if (!given && !WAYS[way]) throw new Problem(`no way to make images is called ${way}; there are ${Object.keys(WAYS).join(', ')}, tag:NAME`);
  const tag = given ?? `pods-${way}`;
  if (!given) {
    say(`making the images (${way})`);
    await WAYS[way](tag);
  }
  const missing = ALL.map((name) => nameOf(name, tag)).filter((image) => !isThere(image));
  if (missing.length > 0) throw new Problem(`there is no image ${missing.join(', ')}`);
  if (!isThere(REDIS_IMAGE)) {
    say('making the image of Redis');
    await buildRedisImage();
  }
  return tag;
}

/** Images of an earlier version: of `revision`, of the last release, or of what stands above. Gives the tag and the revision. */
export async function previousImages(revision, say) {
  const name = revision ?? (git('describe', '--tags', '--abbrev=0') || PREVIOUS);
  const commit = git('rev-parse', '--short', `${name}^{commit}`);
  if (!commit) throw new Problem(`no revision is called ${name}`);
  const tag = `previous-${commit}`;
  if (PRODUCT.every((image) => isThere(nameOf(image, tag)))) return { tag, revision: commit };
  say(`making the images of ${name} (release; many minutes the first time)`);
  const tree = join(ROOT, 'target/pods', commit);
  if (!existsSync(tree)) await run('git', ['worktree', 'add', '--force', '--detach', tree, commit], { quiet: true });
  try {
    // BUILDAH_STORAGE: versions that built with buildah kept their images where podman does not look
    const env = { ...process.env, IMAGE_TAG: tag, BUILDAH_STORAGE: '', CARGO_TARGET_DIR: join(ROOT, 'target/pods/cargo') };
    await run(process.execPath, ['dev/images.mjs'], { cwd: tree, env, quiet: true });
  } finally {
    await run('git', ['worktree', 'remove', '--force', tree], { quiet: true });
  }
  return { tag, revision: commit };
}

/** What stands for an image of the manifests: the product's by tag, Redis by the one made here, since no registry is asked. */
export const imagesBy = (tag) => (image) => {
  const own = /^localhost\/vestibule-([a-z-]+):dev$/.exec(image);
  if (own) return nameOf(own[1], tag);
  return /(^|\/)(redis|valkey):/.test(image) ? REDIS_IMAGE : image;
};

export const imageOf = nameOf;

/** The images of a tag, by what they hold. */
export const idsOf = (tag) => PRODUCT.map((name) => spawnSync('podman', ['image', 'inspect', '--format', '{{.Id}}', nameOf(name, tag)], { encoding: 'utf8' }).stdout.trim());

/** The commit the images of a tag were made of. */
export const revisionOf = (tag) => spawnSync('podman', ['image', 'inspect', '--format', '{{index .Labels "org.opencontainers.image.revision"}}', nameOf('edge', tag)], { encoding: 'utf8' }).stdout.trim();
