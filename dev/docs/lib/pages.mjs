// The documents that are pages of the site, their titles, and their places in the navigation.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';

import { ROOT } from '../../stack.mjs';

const BESIDE_DOCS = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];

const below = (folder) => readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? below(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));

/** Documents that become pages, by their paths in the repository. */
export const documents = () => [...BESIDE_DOCS, ...below('docs').filter((path) => path.endsWith('.md'))];

/** A document's path in the site: `docs/a/README.md` becomes `a/index.md`, `SECURITY.md` `project/security.md`. */
export function pageOf(document) {
  if (document === 'README.md') return 'index.md';
  if (BESIDE_DOCS.includes(document)) return `project/${document.toLowerCase()}`;
  const path = document.replace(/^docs\//, '');
  return basename(path) === 'README.md' ? posix.join(dirname(path), 'index.md') : path;
}

/** Its first heading, without marks. */
export function titleOf(document) {
  const title = /^# (.+)$/m.exec(readFileSync(join(ROOT, document), 'utf8'))?.[1];
  if (!title) throw new Error(`${document} has no first-level heading, which the navigation needs`);
  return title.replaceAll('`', '');
}

/** The target of a link in a document: `{page}` of the site or `{file}` of the repository, with its fragment. */
export function targetOf(document, href) {
  const [path, fragment] = href.split(/(?=#)/);
  const file = path.startsWith('#') || !path ? document : posix.normalize(posix.join(posix.dirname(document), decodeURI(path)));
  const anchor = path.startsWith('#') ? path : (fragment ?? '');
  if (!existsSync(join(ROOT, file))) throw new Error(`${document}: the link ${href} is broken`);
  if (documents().includes(file)) return { page: pageOf(file), anchor };
  return { file: file.replace(/\/$/, ''), anchor, isFolder: statSync(join(ROOT, file)).isDirectory() };
}

/** The navigation with `every` replaced by pages; throws unless every page has one place and every place a page. */
export function arrange(navigation, all = documents(), title = titleOf) {
  const named = navigation.flatMap(({ pages }) => pages.filter((page) => typeof page === 'string'));
  const folders = navigation.flatMap(({ pages }) => pages.filter((page) => typeof page !== 'string').map(({ every }) => every));
  const faults = [
    ...named.filter((page) => !all.includes(page)).map((page) => `${page} is in the navigation and not there`),
    ...named.filter((page, at) => named.indexOf(page) !== at).map((page) => `${page} is in the navigation twice`),
    ...all.filter((page) => !named.includes(page) && !folders.includes(dirname(page))).map((page) => `${page} has no place: give it one in dev/docs/navigation.mjs`),
  ];
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const rest = (folder) => all.filter((page) => dirname(page) === folder && !named.includes(page)).sort((one, other) => title(one).localeCompare(title(other), 'en'));
  return navigation.map(({ pages, ...section }) => ({ ...section, pages: pages.flatMap((page) => (typeof page === 'string' ? [page] : rest(page.every))) }));
}
