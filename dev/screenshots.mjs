// `make screenshots`: takes the pictures of the documents from the real stack with Debian's Chromium.
import { join } from 'node:path';

import { buildServices, buildWeb, checkTools, installPackages, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const say = (text) => process.stdout.write(`${text}\n`);
checkTools();
await installPackages('dev/idp', say);
await installPackages('web', say);
await buildWeb(say);
await buildServices(say);
await run('npm', ['run', '--silent', 'screenshots'], { cwd: join(ROOT, 'web') });
