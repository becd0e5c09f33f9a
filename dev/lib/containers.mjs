// The program that builds images: the first of podman, buildah and docker on this machine, or CONTAINER_BUILDER.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { Problem, run } from './build.mjs';

const BUILDERS = ['podman', 'buildah', 'docker'];

const works = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;

/** The builder on this machine, or undefined. */
export const findBuilder = () => [process.env.CONTAINER_BUILDER, ...BUILDERS].find((name) => name && works(name));

function builder() {
  const found = findBuilder();
  if (!found) throw new Problem(`images are built by one of ${BUILDERS.join(', ')} (Debian: apt-get install podman)`);
  return found;
}

/** This machine's platform as a build argument: buildah before 1.33 does not pass it to FROM lines. */
export const builderPlatform = () => ({ BUILDPLATFORM: `linux/${process.arch === 'arm64' ? 'arm64' : 'amd64'}` });

/** Each builder's option for the time of files and image, so that the same source gives the same image. */
const timeFlags = (name, epoch) => (name === 'docker'
  ? ['--build-arg', `SOURCE_DATE_EPOCH=${epoch}`, '--output', 'type=docker,rewrite-timestamp=true']
  : ['--timestamp', epoch]);

/**
 * Builds one image. `args` are build arguments; `contexts` are folders that replace stages; without `cache`, no old
 * layer is used; `epoch` is the time of all files, in seconds; `platform` is linux/amd64 or linux/arm64. Builders get
 * CONTAINER_BUILDER_FLAGS: "--isolation chroot" helps podman or buildah without namespaces (in a container).
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

/** Writes the files in the last stage of a Containerfile to the folder `to`. */
export async function buildFiles({ file, ignoreFile, context, to }) {
  await run('podman', ['build', '--quiet', '--ignorefile', ignoreFile, '--output', to, '--file', file, context], { env: podmanEnvironment(), quiet: true });
}

/** The built image: `{name, id, arch, bytes, labels, layers}`. */
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

// Settings for podman in tests: runc, and fewer open files and processes than the kernel's maximum. They also work in
// containers and virtual machines, where podman's defaults may fail.
const SETTINGS = '[containers]\ndefault_ulimits=["nofile=16384:16384","nproc=8192:8192"]\n[engine]\nruntime="runc"\n';

/** The environment for podman, and for programs that run it, in tests; an existing CONTAINERS_CONF stays. */
export function podmanEnvironment() {
  if (process.env.CONTAINERS_CONF) return process.env;
  const file = join(ROOT, '.cache/containers.conf');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, SETTINGS);
  return { ...process.env, CONTAINERS_CONF: file };
}
