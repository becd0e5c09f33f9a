// `make docs`: builds the documents as a site with search, in target/docs. It fails on pages without a place in
// dev/docs/navigation.mjs, broken links or anchors, languages it cannot colour, and resources of other sites.
//
//   node dev/docs.mjs            DOCS_BASE=/docs/ builds for a path.
//   node dev/docs.mjs --serve    builds it and serves it on loopback.
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { checkSite } from './docs/lib/check.mjs';
import { documents, pageOf } from './docs/lib/pages.mjs';
import { serveSite } from './docs/lib/serve.mjs';
import { endOnErrors, installPackages, Problem, run } from './lib/build.mjs';
import { ROOT } from './stack.mjs';

const SOURCE = join(ROOT, 'dev/docs/.pages'); // pages become modules, which import packages from dev/docs
const SITE = join(ROOT, 'target/docs');
const say = (text) => process.stderr.write(`${text}\n`);

/** VitePress needs its pages in one folder, and a start page with the name index. */
function gather() {
  rmSync(SOURCE, { recursive: true, force: true });
  for (const document of documents()) {
    const page = join(SOURCE, pageOf(document));
    mkdirSync(dirname(page), { recursive: true });
    cpSync(join(ROOT, document), page);
  }
  cpSync(join(ROOT, 'docs/images'), join(SOURCE, 'images'), { recursive: true });
  cpSync(join(ROOT, 'docs/images'), join(SOURCE, 'docs/images'), { recursive: true }); // README.md links to them here
  cpSync(join(ROOT, 'web/public/favicon.svg'), join(SOURCE, 'public/favicon.svg'));
}

endOnErrors();
await installPackages('dev/docs', say);
gather();
const told = await run('npx', ['--no-install', 'vitepress', 'build', '.'], { cwd: join(ROOT, 'dev/docs'), quiet: true });
const unknown = [...told.matchAll(/The language '(\S+)' is not loaded/g)].map(([, name]) => name);
if (unknown.length > 0) throw new Problem(`the site cannot colour blocks in these languages: ${[...new Set(unknown)].join(', ')}`);
const { pages, faults } = checkSite(SITE);
if (faults.length > 0) throw new Problem(faults.join('\n'));
process.stdout.write(`target/docs: ${pages} pages\n`);
if (process.argv.includes('--serve')) process.stdout.write(`${(await serveSite(SITE, 8000)).url}\n`);
