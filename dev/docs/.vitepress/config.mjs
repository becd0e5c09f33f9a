// The site: VitePress with a copy of the documents, made by dev/docs.mjs. It loads no resources of other sites.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../../stack.mjs';
import { asInTheRepository, slugify } from '../lib/markdown.mjs';
import { arrange, pageOf, titleOf } from '../lib/pages.mjs';
import { NAVIGATION } from '../navigation.mjs';

const [, repository] = /^repository = "(.+)"$/m.exec(readFileSync(join(ROOT, 'Cargo.toml'), 'utf8'));
const link = (document) => `/${pageOf(document).replace(/(index)?\.md$/, '')}`;
const item = (document) => ({ text: document === 'README.md' ? 'What it is, and a first run' : titleOf(document), link: link(document) });

export default {
  title: 'Vestibule',
  description: 'Sign-in for web applications: how it works, how to set it up, how to run it.',
  lang: 'en',
  srcDir: '.pages',
  outDir: join(ROOT, 'target/docs'),
  cacheDir: join(ROOT, 'target/docs-cache'),
  base: process.env.DOCS_BASE ?? '/',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${process.env.DOCS_BASE ?? '/'}favicon.svg` }]],
  markdown: { anchor: { slugify }, config: (md) => md.use(asInTheRepository(repository)) },
  // The diagrams have the largest script; two pages load it.
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    logo: '/favicon.svg',
    search: { provider: 'local', options: { detailedView: true } },
    nav: [
      { text: 'Start', link: '/' },
      { text: 'Operating', link: link('docs/operating.md') },
      { text: 'Kubernetes', link: link('docs/kubernetes/README.md') },
      { text: 'Session API', link: link('docs/session-api.md') },
      { text: 'Security', link: link('docs/security.md') },
    ],
    sidebar: arrange(NAVIGATION).map(({ pages, ...section }) => ({ collapsed: false, ...section, items: pages.map(item) })),
    outline: { level: [2, 3] },
    socialLinks: [{ icon: 'github', link: repository, ariaLabel: 'Source' }],
    externalLinkIcon: true,
  },
};
