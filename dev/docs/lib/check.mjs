// Finds faults of a built site: broken links and anchors, and resources of other sites.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, posix, relative } from 'node:path';

const below = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? below(join(folder, entry.name)) : [join(folder, entry.name)]));
const values = (html, pattern) => [...html.matchAll(pattern)].map(([, value]) => value.replaceAll('&amp;', '&'));

/** The file behind an address of the site. */
export function fileOf(site, path) {
  const file = join(site, decodeURIComponent(path));
  if (existsSync(file) && statSync(file).isDirectory()) return join(file, 'index.html');
  return existsSync(file) || extname(file) ? file : `${file}.html`;
}

/** `{pages, faults}` of the site in a folder that is served at `base`. */
export function checkSite(site, base = process.env.DOCS_BASE ?? '/') {
  const pages = below(site).filter((file) => file.endsWith('.html')).map((file) => relative(site, file));
  const read = (page) => readFileSync(join(site, page), 'utf8');
  const ids = new Map(pages.map((page) => [page, new Set(values(read(page), /\sid="([^"]+)"/g))]));
  const faults = [];
  for (const page of pages.filter((name) => name !== '404.html')) {
    const html = read(page);
    for (const loaded of [...values(html, /<(?:script|img|iframe|source|video)[^>]*\ssrc="([^"]+)"/g), ...values(html, /<link(?![^>]*rel="canonical")[^>]*\shref="([^"]+)"/g)]) {
      if (/^(https?:)?\/\//.test(loaded)) faults.push(`${page} loads ${loaded}`);
    }
    for (const href of values(html, /<a[^>]*\shref="([^"]+)"/g).filter((target) => !/^[a-z]+:/.test(target))) {
      const { pathname, hash } = new URL(href, `http://site${base}${page}`);
      const file = relative(site, fileOf(site, posix.relative(base, pathname)));
      if (!existsSync(join(site, file))) faults.push(`${page}: the link ${href} leads nowhere`);
      else if (hash && file.endsWith('.html') && !ids.get(file)?.has(decodeURIComponent(hash.slice(1)))) faults.push(`${page}: the link ${href} leads to no heading`);
    }
  }
  for (const style of below(site).filter((file) => file.endsWith('.css'))) {
    for (const loaded of values(readFileSync(style, 'utf8'), /(?:url\(|@import )["']?(https?:[^"')]+)/g)) faults.push(`${relative(site, style)} loads ${loaded}`);
  }
  return { pages: pages.length, faults };
}
