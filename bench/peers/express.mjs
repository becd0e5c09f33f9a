// express-openid-connect from npm: one process, as `node` starts it in production.
import { fileURLToPath } from 'node:url';

import { installPackages } from '../../dev/lib/build.mjs';
import { Child } from '../../dev/lib/child.mjs';

const APP = fileURLToPath(new URL('./app.mjs', import.meta.url));

let installed;
export function prepareExpress(say) {
  installed ??= installPackages('bench/peers', say);
  return installed;
}

/** Starts it: {pids, ended, tail, stop}, not yet ready. */
export function startExpress(options) {
  const child = new Child('express', process.execPath, [APP], { env: { ...process.env, NODE_ENV: 'production', PEER: JSON.stringify(options) } });
  return {
    pids: () => [['node', child.pid], ...(options.redisPid ? [['redis', options.redisPid]] : [])],
    ended: () => child.ended,
    tail: () => child.tail(),
    stop: () => child.stop(),
  };
}
