// Debian packages that only the benchmark needs.
import { Problem, run } from '../../dev/lib/build.mjs';

const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };

/** Installs packages without their recommendations; without root, says what to install. */
export async function installDebian(packages, say) {
  if (process.getuid?.() !== 0) throw new Problem(`make bench needs these Debian packages: apt-get install ${packages.join(' ')}`);
  say(`installing ${packages.join(' ')}`);
  await run('apt-get', ['update', '-q'], { quiet: true, env });
  await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...packages], { quiet: true, env });
}
