// `make docs`: the documents as a site with search, in target/docs. It fails on a page without a place in the navigation
// (dev/docs/navigation.mjs), a link or anchor that leads nowhere, a language it cannot colour, and anything loaded from elsewhere.
//
//   node dev/docs.mjs            DOCS_BASE=/docs/ if the site is to lie below a path
//   node dev/docs.mjs --serve    builds it and serves it on loopback
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { checkSite } from './docs/lib/check.mjs';
import { documents, pageOf } from './docs/lib/pages.mjs';
import { serveSite } from './docs/lib/serve.mjs';
import { installPackages, Problem, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const SOURCE = join(ROOT, 'dev/docs/.pages'); // pages become modules, which look for packages beside them
const SITE = join(ROOT, 'target/docs');
const say = (text) => process.stderr.write(`${text}\n`);

/** VitePress wants its pages in one folder, and the start page to be called index. */
function gather() {
  rmSync(SOURCE, { recursive: true, force: true });
  for (const document of documents()) {
    const page = join(SOURCE, pageOf(document));
    mkdirSync(dirname(page), { recursive: true });
    cpSync(join(ROOT, document), page);
  }
  cpSync(join(ROOT, 'docs/images'), join(SOURCE, 'images'), { recursive: true });
  cpSync(join(ROOT, 'docs/images'), join(SOURCE, 'docs/images'), { recursive: true }); // where README.md looks for them
  cpSync(join(ROOT, 'web/public/favicon.svg'), join(SOURCE, 'public/favicon.svg'));
}

try {
  await installPackages('dev/docs', say);
  gather();
  const told = await run('npx', ['--no-install', 'vitepress', 'build', '.'], { cwd: join(ROOT, 'dev/docs'), quiet: true });
  const unknown = [...told.matchAll(/The language '(\S+)' is not loaded/g)].map(([, name]) => name);
  if (unknown.length > 0) throw new Problem(`blocks are in languages the site cannot colour: ${[...new Set(unknown)].join(', ')}`);
  const { pages, faults } = checkSite(SITE);
  if (faults.length > 0) throw new Problem(faults.join('\n'));
  process.stdout.write(`target/docs: ${pages} pages\n`);
  if (process.argv.includes('--serve')) process.stdout.write(`${(await serveSite(SITE, 8000)).url}\n`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
