// `make images`: the three container images, built with buildah from programs built on this machine; no registry is used.
// IMAGE_TAG names the tag (dev). The other way, everything inside containers, is `buildah build --target edge .`.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { buildWeb, checkTools, installPackages, Problem, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const TARGET = 'x86_64-unknown-linux-gnu';
const SERVER = { name: 'static-web-server', version: '2.44.1' };
const MAX_BYTES = 20 * 1000 * 1000; // what an image may weigh
const tag = process.env.IMAGE_TAG || 'dev';
const targetDir = resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target');
const stage = join(ROOT, 'target/images');
const env = { ...process.env, RUSTFLAGS: '-C target-feature=+crt-static', CARGO_TARGET_DIR: targetDir };
const say = (text) => process.stdout.write(`${text}\n`);

// inside a container or a virtual machine without overlay and namespaces these still work; BUILDAH_FLAGS overrides them
const storage = (process.env.BUILDAH_STORAGE ?? '--storage-driver vfs').split(' ').filter(Boolean);
const buildah = (...args) => run('buildah', [...storage, ...args]);

/** Whether an ELF program names an interpreter, that is, needs libraries which an empty image does not have. */
function dynamic(file) {
  const elf = readFileSync(file);
  const PT_INTERP = 3;
  const [offset, size, count] = [Number(elf.readBigUInt64LE(0x20)), elf.readUInt16LE(0x36), elf.readUInt16LE(0x38)];
  return Array.from({ length: count }, (_, at) => elf.readUInt32LE(offset + at * size)).includes(PT_INTERP);
}

try {
  checkTools();
  if (spawnSync('buildah', ['--version'], { stdio: 'ignore' }).status !== 0) {
    if (process.getuid?.() !== 0) throw new Problem('make images needs buildah (Debian: apt-get install buildah).');
    say('installing buildah');
    await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'buildah'], { quiet: true });
  }
  say('building static programs (release; the first time this takes many minutes)');
  await run('cargo', ['build', '--locked', '--release', '--target', TARGET, '-p', 'auth-edge', '-p', 'session-svc'], { env });
  const tools = join(targetDir, 'tools', `${SERVER.name}-${SERVER.version}`);
  if (!existsSync(join(tools, 'bin', SERVER.name))) {
    say(`building ${SERVER.name} ${SERVER.version}`);
    await run('cargo', ['install', '--locked', '--root', tools, '--target', TARGET, '--version', SERVER.version, '--no-default-features', '--features', 'fallback-page,compression-gzip,compression-brotli', SERVER.name], {
      env: { ...env, CARGO_TARGET_DIR: join(targetDir, 'tools/build') },
    });
  }
  await installPackages('web', say);
  await buildWeb(say);

  rmSync(stage, { recursive: true, force: true });
  mkdirSync(join(stage, 'bin'), { recursive: true });
  const programs = [...['auth-edge', 'session-svc'].map((name) => join(targetDir, TARGET, 'release', name)), join(tools, 'bin', SERVER.name)];
  for (const program of programs) {
    const copy = join(stage, 'bin', program.split('/').pop());
    copyFileSync(program, copy);
    chmodSync(copy, 0o755);
  }
  const linked = programs.filter(dynamic);
  if (linked.length > 0) throw new Problem(`not static, so they would not start in an empty image: ${linked.join(', ')}`);
  cpSync(join(ROOT, 'web/dist'), join(stage, 'web'), { recursive: true });
  spawnSync('chmod', ['-R', 'a+rX', join(stage, 'web')]);

  for (const target of ['edge', 'session-svc', 'web']) {
    say(`image vestibule-${target}:${tag}`);
    await buildah('build', '--isolation', 'chroot', '--build-arg', 'BUILD=host', '--target', target, '--ignorefile', 'dev/images/ignore', '--quiet', '-t', `localhost/vestibule-${target}:${tag}`, '-f', 'Containerfile', '.');
  }
  await buildah('images', '--filter', 'reference=localhost/vestibule-*');
  for (const program of programs) {
    const { size } = statSync(program);
    if (size > MAX_BYTES) throw new Problem(`${program} weighs ${(size / 1e6).toFixed(1)} MB; an image may weigh ${MAX_BYTES / 1e6} MB`);
  }
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
