// The revision and the time of the images' source.
import { spawnSync } from 'node:child_process';

import { ROOT } from '../stack.mjs';

const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';

/** Seconds since 1970: SOURCE_DATE_EPOCH, or the last commit's time; 0 outside a repository. */
export const sourceEpoch = () => process.env.SOURCE_DATE_EPOCH || git('log', '-1', '--format=%ct') || '0';

/** The commit, marked if the tree has other changes; undefined outside a repository. */
export function sourceRevision() {
  const commit = git('rev-parse', 'HEAD');
  return commit ? `${commit}${git('status', '--porcelain') ? '-dirty' : ''}` : undefined;
}
