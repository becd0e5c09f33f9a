// The program that builds images: podman, buildah or docker, whichever is there first, or CONTAINER_BUILDER.
import { spawnSync } from 'node:child_process';

import { Problem, run } from './build.mjs';

const BUILDERS = ['podman', 'buildah', 'docker'];

const works = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;

/** The builder of this machine, or undefined. */
export const findBuilder = () => [process.env.CONTAINER_BUILDER, ...BUILDERS].find((name) => name && works(name));

/**
 * Builds one image. `args` are build arguments, `flags` go to the builder as they are. Where podman or buildah cannot make
 * namespaces (in a container), CONTAINER_BUILDER_FLAGS="--isolation chroot" helps.
 */
export async function buildImage({ file, context, tag, target, args = {}, flags = [], quiet = false }) {
  const builder = findBuilder();
  if (!builder) throw new Problem(`images are built by one of ${BUILDERS.join(', ')} (Debian: apt-get install podman)`);
  const own = (process.env.CONTAINER_BUILDER_FLAGS ?? '').split(' ').filter(Boolean);
  const all = [
    'build', ...own, ...flags,
    ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
    ...(target ? ['--target', target] : []), ...(quiet ? ['--quiet'] : []), '--tag', tag, '--file', file, context,
  ];
  await run(builder, all, { quiet });
}
