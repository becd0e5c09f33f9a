// Debian packages that the benchmark wants beside what the product needs.
import { Problem, run } from '../../dev/lib/build.mjs';

const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };

/** Installs packages with nothing they only recommend; says what to install when this is not root. */
export async function installDebian(packages, say) {
  if (process.getuid?.() !== 0) throw new Problem(`make bench needs these Debian packages: apt-get install ${packages.join(' ')}`);
  say(`installing ${packages.join(' ')}`);
  await run('apt-get', ['update', '-q'], { quiet: true, env });
  await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...packages], { quiet: true, env });
}
