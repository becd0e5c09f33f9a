// Each page has a place in the navigation, and links mean on the site what they mean in the repository.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { checkSite } from '../../docs/lib/check.mjs';
import { address, slugify } from '../../docs/lib/markdown.mjs';
import { arrange, documents, pageOf } from '../../docs/lib/pages.mjs';
import { every, NAVIGATION } from '../../docs/navigation.mjs';

const REPOSITORY = 'https://git.example/vestibule';
const title = (page) => page;

test('every document has one place', () => {
  const placed = arrange(NAVIGATION).flatMap(({ pages }) => pages);
  assert.deepEqual(placed.toSorted(), documents().toSorted());
});

test('a page without a place, with two, or that is not there is named', () => {
  const there = ['docs/tea.md', 'docs/a/one.md', 'docs/a/two.md'];
  assert.throws(() => arrange([{ pages: [every('docs/a')] }], there, title), /^Error: docs\/tea\.md has no place: give it one in dev\/docs\/navigation\.mjs$/);
  assert.throws(() => arrange([{ pages: ['docs/tea.md', every('docs/a')] }, { pages: ['docs/tea.md'] }], there, title), /docs\/tea\.md is in the navigation twice/);
  assert.throws(() => arrange([{ pages: ['docs/tea.md', 'docs/coffee.md', every('docs/a')] }], there, title), /docs\/coffee\.md is in the navigation and not there/);
  const [{ pages }] = arrange([{ pages: ['docs/tea.md', 'docs/a/two.md', every('docs/a')] }], there, title);
  assert.deepEqual(pages, ['docs/tea.md', 'docs/a/two.md', 'docs/a/one.md']);
});

test('links lead to pages of the site, and to files of the repository', () => {
  const to = (document, href) => address(document, href, REPOSITORY);
  assert.equal(to('README.md', 'docs/kubernetes/README.md#x'), 'kubernetes/index.md#x');
  assert.equal(to('docs/kubernetes/tls.md', '../operating.md#stores'), '../operating.md#stores');
  assert.equal(to('docs/security.md', '../SECURITY.md'), 'project/security.md');
  assert.equal(to('docs/security.md', '#here'), '#here');
  assert.equal(to('docs/kubernetes/images.md', '../../compose.yaml'), `${REPOSITORY}/blob/main/compose.yaml`);
  assert.equal(to('docs/session-api.md', '../proto/session/v1'), `${REPOSITORY}/tree/main/proto/session/v1`);
  assert.equal(to('README.md', 'https://example.org/'), 'https://example.org/');
  assert.throws(() => to('README.md', 'docs/tea.md'), /README\.md: the link docs\/tea\.md leads nowhere/);
  assert.equal(pageOf('README.md'), 'index.md');
  assert.equal(slugify('What `tls:` is, and is_not (v1)'), 'what-tls-is-and-is_not-v1');
});

test('a site with a dead link, a dead anchor or something from elsewhere is not whole', () => {
  const site = mkdtempSync(join(tmpdir(), 'vestibule-site-'));
  const write = (name, text) => {
    mkdirSync(dirname(join(site, name)), { recursive: true });
    writeFileSync(join(site, name), text);
  };
  try {
    write('index.html', '<a href="/a/b.html#there">x</a><a href="a/b.html#tea">x</a><a href="/tea.html">x</a><a href="https://example.org">x</a><script src="https://cdn.example/x.js"></script>');
    write('a/b.html', '<h2 id="there"></h2><a href="../">x</a>');
    write('style.css', '@font-face { src: url("https://fonts.example/x.woff2") }');
    assert.deepEqual(checkSite(site, '/'), {
      pages: 2,
      faults: [
        'index.html loads https://cdn.example/x.js',
        'index.html: the link a/b.html#tea leads to no heading',
        'index.html: the link /tea.html leads nowhere',
        'style.css loads https://fonts.example/x.woff2',
      ],
    });
  } finally {
    rmSync(site, { recursive: true, force: true });
  }
});
