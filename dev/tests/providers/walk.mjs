// Walks a person's browser through a provider's pages.

const MOST_PAGES = 25; // redirects and pages of one sign-in; a loop is a failure

/**
 * Follows redirects and fills in the provider's pages with `answer`, until it reaches an address of the edge other
 * than its login. Returns `{landed}`, that address, not yet requested; or `{page}` if `answer` has no reply.
 * @param {import('../product/client.mjs').Client} person
 */
export async function walk(person, from, { edgeUrl, answer = () => undefined }) {
  const isBack = (url) => url === edgeUrl || url.startsWith(`${edgeUrl}/`);
  let [url, init] = [from, {}];
  const seen = [];
  for (let count = 0; count < MOST_PAGES; count += 1) {
    const page = await person.navigate(url, init);
    seen.push(`${init.method ?? 'GET'} ${url.slice(0, 200)} → ${page.status}`);
    const location = page.headers.get('location');
    const next = location ? { url: new URL(location, url).href } : await answer(page, person);
    if (!next) return { page, seen };
    ({ url, ...init } = next);
    if (isBack(url)) return { landed: url, seen };
  }
  throw new Error(`too many pages:\n${seen.join('\n')}`);
}
