// The program that builds images: podman, buildah or docker, whichever is there first, or CONTAINER_BUILDER.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { Problem, run } from './build.mjs';

const BUILDERS = ['podman', 'buildah', 'docker'];

const works = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;

/** The builder of this machine, or undefined. */
export const findBuilder = () => [process.env.CONTAINER_BUILDER, ...BUILDERS].find((name) => name && works(name));

function builder() {
  const found = findBuilder();
  if (!found) throw new Problem(`images are built by one of ${BUILDERS.join(', ')} (Debian: apt-get install podman)`);
  return found;
}

/** The platform of this machine as a build argument: builders know it, but buildah before 1.33 keeps it from FROM lines. */
export const builderPlatform = () => ({ BUILDPLATFORM: `linux/${process.arch === 'arm64' ? 'arm64' : 'amd64'}` });

/** How each builder is told the time that files and the image itself are to carry, so that the same source is the same image. */
const timeFlags = (name, epoch) => (name === 'docker'
  ? ['--build-arg', `SOURCE_DATE_EPOCH=${epoch}`, '--output', 'type=docker,rewrite-timestamp=true']
  : ['--timestamp', epoch]);

/**
 * Builds one image. `args` are build arguments; `contexts` are folders that stand in the place of stages; without `cache` no layer of an earlier build is taken; `epoch` is the time
 * everything in it carries, in seconds; `platform` is linux/amd64 or linux/arm64. CONTAINER_BUILDER_FLAGS go to the builder as they
 * are: where podman or buildah cannot make namespaces (in a container), "--isolation chroot" helps.
 */
export async function buildImage({ file, context, tag, target, platform, epoch, args = {}, contexts = {}, labels = {}, cache = true, env, quiet = false }) {
  const name = builder();
  const own = (process.env.CONTAINER_BUILDER_FLAGS ?? '').split(' ').filter(Boolean);
  await run(name, [
    'build', ...own, ...(platform ? ['--platform', platform] : []), ...(epoch === undefined ? [] : timeFlags(name, epoch)),
    ...Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]),
    ...Object.entries(contexts).flatMap(([key, path]) => ['--build-context', `${key}=${path}`]),
    ...Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]), ...(cache ? [] : ['--no-cache']),
    ...(target ? ['--target', target] : []), ...(quiet ? ['--quiet'] : []), '--tag', tag, '--file', file, context,
  ], { env, quiet });
}

/** The files that the last stage of a Containerfile holds, in folder `to`. */
export async function buildFiles({ file, ignoreFile, context, to }) {
  await run('podman', ['build', '--quiet', '--ignorefile', ignoreFile, '--output', to, '--file', file, context], { env: podmanEnvironment(), quiet: true });
}

/** What was built: `{name, id, arch, bytes, labels, layers}`. */
export function inspectImage(tag) {
  const name = builder();
  const inspect = name === 'buildah' ? ['inspect', '--type', 'image', tag] : ['image', 'inspect', tag];
  const told = JSON.parse(execFileSync(name, inspect, { encoding: 'utf8', maxBuffer: 1 << 24 }));
  if (name === 'buildah') {
    const { FromImageID, OCIv1 } = told;
    return { name: tag, id: FromImageID, arch: OCIv1.architecture, labels: OCIv1.config.Labels, layers: OCIv1.rootfs.diff_ids };
  }
  const [{ Id, Architecture, Size, Config, RootFS }] = told;
  return { name: tag, id: Id.replace('sha256:', ''), arch: Architecture, bytes: Size, labels: Config.Labels, layers: RootFS.Layers };
}

// What podman is told in tests: runc, and fewer open files and processes than the kernel's most, work in containers and in virtual
// machines too, where podman's own choices may not.
const SETTINGS = '[containers]\ndefault_ulimits=["nofile=16384:16384","nproc=8192:8192"]\n[engine]\nruntime="runc"\n';

/** The environment in which tests run podman, and what runs podman; a CONTAINERS_CONF of one's own stays. */
export function podmanEnvironment() {
  if (process.env.CONTAINERS_CONF) return process.env;
  const file = join(ROOT, '.cache/containers.conf');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, SETTINGS);
  return { ...process.env, CONTAINERS_CONF: file };
}
