// A browser's worth of client for the provider's own tests: a cookie jar, redirects followed by hand, one started process.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Child } from '../../lib/child.mjs';

const SERVER = fileURLToPath(new URL('../server.mjs', import.meta.url));
export const CALLBACK = 'http://127.0.0.1:3000/api/auth/callback';
export const SIGNED_OUT = 'http://127.0.0.1:3000/signed-out';

/** Starts the provider; `stop` ends it, `stateFile` outlives it until the test removes the folder. */
export async function startProvider(t, extra = [], stateFile) {
  const folder = stateFile ? undefined : mkdtempSync(join(tmpdir(), 'vestibule-idp-'));
  const child = new Child('idp', process.execPath, [
    SERVER, '--port', '0', '--redirect-uri', CALLBACK, '--post-logout-redirect-uri', SIGNED_OUT,
    '--state', stateFile ?? join(folder, 'state.json'), ...extra,
  ]);
  t.after(async () => {
    await child.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });
  const line = await Promise.race([child.firstLine, child.exited.then(() => { throw new Error(child.tail()); })]);
  return { ...JSON.parse(line), stop: () => child.stop(), log: () => child.output };
}

/** A cookie jar that follows nothing by itself. */
export class Browser {
  cookies = new Map();

  async fetch(url, options = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { ...options, redirect: 'manual', headers: { accept: 'text/html', ...(cookie ? { cookie } : {}), ...options.headers } });
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      if (value === '' || /expires=Thu, 01 Jan 1970/i.test(set)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  post(url, fields) {
    return this.fetch(url, { method: 'POST', body: new URLSearchParams(fields) });
  }

  /** Follows redirects until one leaves the provider; gives the last response and where it points. */
  async follow(url, issuer) {
    let response = await this.fetch(url);
    let location = response.headers.get('location');
    while (location && new URL(location, issuer).href.startsWith(`${issuer}/`)) {
      url = new URL(location, issuer).href;
      response = await this.fetch(url);
      location = response.headers.get('location');
    }
    return { response, url, location };
  }
}

export function newLogin(idp, extra = {}) {
  const verifier = randomBytes(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const query = new URLSearchParams({
    client_id: idp.client_id, response_type: 'code', scope: 'openid profile email', redirect_uri: CALLBACK,
    state: 'state-1', nonce: 'nonce-1', code_challenge: challenge, code_challenge_method: 'S256', ...extra,
  });
  return { verifier, url: `${idp.issuer}/auth?${query}` };
}

/** Signs in and gives the parameters the callback would get. */
export async function signIn(browser, idp, { email = 'ada@example.test', password = 'analytical-engine', ...extra } = {}) {
  const login = newLogin(idp, extra);
  const page = await browser.follow(login.url, idp.issuer);
  const answer = await browser.post(`${page.url}/login`, { email, password });
  const { location } = await browser.follow(new URL(answer.headers.get('location'), idp.issuer).href, idp.issuer);
  return { ...login, callback: Object.fromEntries(new URL(location).searchParams) };
}

export async function token(idp, fields) {
  const response = await fetch(`${idp.issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(idp.client_id)}:${encodeURIComponent(idp.client_secret)}`)}` },
    body: new URLSearchParams(fields),
  });
  return { status: response.status, body: await response.json() };
}

export const redeem = (idp, { callback, verifier }) => token(idp, { grant_type: 'authorization_code', code: callback.code, redirect_uri: CALLBACK, code_verifier: verifier });

export const claimsOf = (jwt) => JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url'));
