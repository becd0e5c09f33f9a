// A person's way through a provider's pages.

const MOST_PAGES = 25; // redirects and pages of one sign-in; a loop is a failure

/**
 * Goes on from an address, answering the provider's pages as `answer` says, until an address of the edge comes up that is not its
 * login. Gives `{landed}`, that address, which was not asked for yet; or `{page}`, a page `answer` gives nothing for.
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
