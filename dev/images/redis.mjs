// A Redis image of Debian's packages redis-server, redis-tools and busybox-static, for machines without a registry.
// Tests on real containers use it in place of docker.io/library/redis. Like that image it has programs on the path,
// a shell and an empty /data. It names no user: the caller does.
//
//   node dev/images/redis.mjs [TAG]      localhost/vestibule-redis:dev
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { buildImage } from '../lib/containers.mjs';
import { addProgram } from './root.mjs';

export const REDIS_IMAGE = 'localhost/vestibule-redis:dev';

const PROGRAMS = ['redis-server', 'redis-cli', 'redis-benchmark', 'redis-check-aof', 'redis-check-rdb'];
const PACKAGES = 'redis-server redis-tools busybox-static';
const SHELL = '/bin/busybox';
const APPLETS = ['sh', 'awk', 'cat', 'chmod', 'cp', 'cut', 'date', 'echo', 'env', 'grep', 'head', 'hostname', 'id', 'kill', 'ls', 'mkdir', 'mv', 'nc', 'printf', 'ps', 'rm', 'sed', 'sha256sum', 'sleep', 'sort', 'stat', 'tail', 'test', 'timeout', 'touch', 'tr', 'true', 'wc'];

const CONTAINERFILE = `FROM scratch
COPY . /
ENV PATH=/usr/local/bin:/usr/bin:/bin
WORKDIR /data
VOLUME /data
EXPOSE 6379
CMD ["redis-server"]
`;

/** Builds the image from installed packages, and returns its name. */
export async function buildRedisImage(tag = REDIS_IMAGE) {
  const installed = (name) => ['/usr/bin', '/usr/local/bin'].map((folder) => join(folder, name)).find(existsSync);
  const programs = PROGRAMS.map(installed);
  if (programs.includes(undefined) || !existsSync(SHELL)) throw new Error(`the image of Redis needs Debian's packages ${PACKAGES}`);
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-redis-'));
  try {
    const root = join(folder, 'root');
    for (const program of programs) addProgram(root, program, join('/usr/local/bin', basename(program)));
    symlinkSync('redis-server', join(root, 'usr/local/bin/redis-sentinel'));
    addProgram(root, SHELL);
    for (const applet of APPLETS) symlinkSync('busybox', join(root, 'bin', applet));
    for (const name of ['tmp', 'data']) {
      mkdirSync(join(root, name));
      chmodSync(join(root, name), 0o1777); // for any user
    }
    mkdirSync(join(root, 'etc'));
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nredis:x:999:999::/data:/bin/sh\n');
    writeFileSync(join(root, 'etc/group'), 'root:x:0:\nredis:x:999:\n');
    writeFileSync(join(folder, 'Containerfile'), CONTAINERFILE);
    await buildImage({ file: join(folder, 'Containerfile'), context: root, tag, quiet: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return tag;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(`${await buildRedisImage(process.argv[2])}\n`);
