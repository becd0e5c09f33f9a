// A browser without a window: separate cookies for each origin; follows redirects only on request.
import assert from 'node:assert/strict';
import http from 'node:http';

/** Headers a browser sends when a person follows a link or types an address. */
export const NAVIGATION = {
  accept: 'text/html,application/xhtml+xml',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
};

/** The longest head of the edge's own responses: nginx reads a head into one buffer of a memory page. */
const LONGEST_HEAD = 4096;

/** Fails if one of the edge's own responses has a longer head. */
function measureHead({ statusCode, statusMessage, rawHeaders, headers }, url) {
  if (headers['cross-origin-resource-policy'] !== 'same-origin') return;
  let bytes = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n\r\n`.length;
  for (let at = 0; at < rawHeaders.length; at += 2) bytes += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`.length;
  assert.ok(bytes <= LONGEST_HEAD, `${url}: a head of ${bytes} bytes`);
}

/**
 * Sends one request unchanged: fetch() would add its own Fetch Metadata and join repeated headers.
 * @returns {Promise<{status: number, headers: Headers, text: string, json: () => any}>}
 */
export function request(url, { method = 'GET', headers = {}, body, agent = false } = {}) {
  return new Promise((resolve, reject) => {
    const content = body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded' } : {};
    const sent = http.request(url, { method, agent, headers: { host: new URL(url).host, ...content, ...headers } }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        try {
          measureHead(response, url);
        } catch (error) {
          reject(error);
        }
        const answered = new Headers();
        for (let at = 0; at < response.rawHeaders.length; at += 2) answered.append(response.rawHeaders[at], response.rawHeaders[at + 1]);
        resolve({ status: response.statusCode, headers: answered, text, url, json: () => JSON.parse(text) });
      });
    });
    sent.on('error', reject);
    sent.end(body?.toString());
  });
}

export class Client {
  /** origin → name → value */
  jars = new Map();
  /** The content of all responses, for assertions on everything that the browser has received. */
  seen = [];
  /** Keeps connections open between requests; without it each request opens a connection. */
  agent = false;

  cookies(url) {
    const { origin } = new URL(url);
    if (!this.jars.has(origin)) this.jars.set(origin, new Map());
    return this.jars.get(origin);
  }

  async fetch(url, { headers = {}, ...init } = {}) {
    const jar = this.cookies(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await request(url, { agent: this.agent, ...init, headers: { ...(cookie && { cookie }), ...headers } });
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split('; ');
      const at = pair.indexOf('=');
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
      const gone = attributes.some((attribute) => /^max-age=(0|-.*)$/i.test(attribute) || (/^expires=/i.test(attribute) && Date.parse(attribute.slice('expires='.length)) <= Date.now()));
      if (gone) jar.delete(name);
      else jar.set(name, value);
    }
    this.seen.push(`${url}\n${[...response.headers].map((pair) => pair.join(': ')).join('\n')}\n${response.text}`);
    return response;
  }

  navigate(url, init = {}) {
    return this.fetch(url, { ...init, headers: { ...NAVIGATION, ...init.headers } });
  }

  /** Follows redirects to a page, or until `stopAt(url)` is true for the next address, which it does not request. */
  async follow(url, stopAt = () => false) {
    for (let hop = 0; hop < 12; hop += 1) {
      const answer = await this.navigate(url);
      const location = answer.headers.get('location');
      if (!location) return answer;
      const next = new URL(location, url).href;
      if (stopAt(next)) return { ...answer, location: next };
      url = next;
    }
    throw new Error(`too many redirects, the last to ${url}`);
  }

  /** Signs in up to, but not including, the callback; returns the callback's URL. */
  async authorize(stack, { account = stack.accounts[0], login = '/api/auth/login' } = {}) {
    const isCallback = (url) => new URL(url).pathname.startsWith('/api/auth/callback');
    const page = await this.follow(new URL(login, stack.edgeUrl).href, isCallback);
    if (page.location) return page.location; // the provider already knows this browser
    assert.equal(page.status, 200, page.text);
    const body = new URLSearchParams({ email: account.email, password: account.password });
    const answer = await this.navigate(`${page.url}/login`, { method: 'POST', body });
    assert.equal(answer.status, 303, answer.text);
    const next = new URL(answer.headers.get('location'), page.url).href;
    const back = isCallback(next) ? { location: next } : await this.follow(next, isCallback);
    assert.ok(back.location, back.text);
    return back.location;
  }

  /** Signs in; returns the response to the callback. */
  async signIn(stack, options) {
    const answer = await this.navigate(await this.authorize(stack, options));
    assert.equal(answer.status, 302, answer.text);
    return answer;
  }

  me(stack, path = '/api/auth/me') {
    return this.fetch(`${stack.edgeUrl}${path}`, { headers: { accept: 'application/json' } });
  }

  sessionCookie(stack) {
    return [...this.cookies(stack.edgeUrl)].find(([name]) => /session$/.test(name));
  }
}
