// Makes links, anchors and diagrams of the documents work on the site as they do in the repository.
import { posix } from 'node:path';

import { documents, pageOf, targetOf } from './pages.mjs';

const documentOf = new Map(documents().map((document) => [pageOf(document), document]));

/** GitHub's anchor of a heading: lower case, no punctuation, hyphens for spaces. */
export const slugify = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-');

/** The address on the site of a link's target; files that are no pages are in the repository. */
export function address(document, href, repository) {
  if (/^([a-z]+:|\/\/)/i.test(href)) return href;
  const { page, file, anchor, isFolder } = targetOf(document, href);
  if (page) return page === pageOf(document) ? anchor || './' : `${posix.relative(posix.dirname(pageOf(document)), page)}${anchor}`;
  return `${repository}/${isFolder ? 'tree' : 'blob'}/main/${file}${anchor}`;
}

/** A plugin of markdown-it. Pictures stay as they are: they are copied with the documents. */
export const asInTheRepository = (repository) => (md) => {
  md.core.ruler.push('links of the repository', ({ tokens, env }) => {
    const document = documentOf.get(env.relativePath);
    for (const link of tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === 'link_open')) {
      link.attrSet('href', address(document, link.attrGet('href'), repository));
    }
  });
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, at, ...rest) => {
    if (tokens[at].info.trim() !== 'mermaid') return fence(tokens, at, ...rest);
    return `<Mermaid source="${encodeURIComponent(tokens[at].content)}" />`;
  };
};
