// `make deb`: builds the program `vestibule` with its web app, and the Debian package of it in target/deb.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { buildWeb, checkTools, endOnErrors, installPackages, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const say = (text) => process.stderr.write(`${text}\n`);
const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
const folder = join(ROOT, 'target/deb');

endOnErrors();
checkTools();
await installPackages('web', say);
await buildWeb(say);
mkdirSync(folder, { recursive: true });
say('building the program (takes some minutes the first time)');
const env = { ...process.env, CARGO_TARGET_DIR: resolve(ROOT, process.env.CARGO_TARGET_DIR || 'target') };
await run('dev/images/programs.sh', ['services', arch, join(folder, 'programs')], { env, quiet: true });
await run('dev/package/deb.sh', [arch, join(folder, 'programs/vestibule'), folder], { env });
