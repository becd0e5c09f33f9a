// What happens in the clients' network namespace: people sign in, ask, sign out and look whether they still are let in; a browser
// does the same with its own eyes. Started by client-pod.mjs, which asks over the channel of child processes.
import { Client, NAVIGATION, request } from '../../tests/product/client.mjs';
import { pause } from '../net.mjs';
import { ask, startLoad } from './load.mjs';

const LOOK_MS = 20; // between two looks whether somebody who has signed out is let in
const LOOKED_MS = 2_500; // for so long after the sign-out
const FOUND_MS = 30_000; // until a session has to be told of, once all is well again
const STEP_MS = 20_000; // of a browser

const me = (url, cookie, host) => ask(`${url}/api/auth/me`, { headers: { accept: 'application/json', cookie, ...(host && { host }) } });

let load;

const WORK = {
  /** Signs people in; gives their cookies. */
  async signIn({ edgeUrl, accounts, count }) {
    const cookies = [];
    for (let number = 0; number < count; number += 1) {
      const client = new Client();
      await client.signIn({ edgeUrl, accounts }, { account: accounts[number % accounts.length] });
      cookies.push(client.sessionCookie({ edgeUrl }).join('='));
    }
    return cookies;
  },

  startLoad(options) {
    load = startLoad(options);
  },

  stopLoad: () => load.stop(),

  /** Which of these sessions are gone: an answer that nobody can give yet is asked for again. */
  async lost({ edgeUrl, cookies }) {
    const until = performance.now() + FOUND_MS;
    const lost = [];
    for (const cookie of cookies) {
      for (;;) {
        const { status } = await me(edgeUrl, cookie);
        if (status === 200) break;
        if (status === 204 || status === 401 || performance.now() > until) {
          lost.push(`${status}`);
          break;
        }
        await pause(LOOK_MS);
      }
    }
    return lost;
  },

  /**
   * Signs out at one edge and looks at `others`, each by its own address: how long after the acknowledged sign-out the session was
   * still honoured by one. Undefined when the sign-out was not acknowledged.
   */
  async signOut({ edgeUrl, cookie, others }) {
    const host = new URL(edgeUrl).host;
    for (const other of others) await me(other, cookie, host); // so that each remembers it
    let answer;
    try {
      answer = await request(`${edgeUrl}/api/auth/logout`, { headers: { ...NAVIGATION, 'sec-fetch-site': 'same-origin', cookie } });
    } catch {
      return undefined;
    }
    if (answer.status !== 302 && answer.status !== 303) return undefined;
    const since = performance.now();
    let honouredMs = 0;
    await Promise.all(others.map(async (other) => {
      while (performance.now() - since < LOOKED_MS) {
        const asked = performance.now() - since;
        const { status } = await me(other, cookie, host);
        if (status === 200) honouredMs = Math.max(honouredMs, asked);
        await pause(LOOK_MS);
      }
    }));
    return honouredMs;
  },

  status: ({ edgeUrl, path, cookie }) => ask(`${edgeUrl}${path}`, { headers: { ...NAVIGATION, ...(cookie && { cookie }) } }),

  /** Those of people who have signed out that are let in again. */
  async honoured({ edgeUrl, cookies }) {
    const answers = await Promise.all(cookies.map((cookie) => me(edgeUrl, cookie)));
    return cookies.filter((_, number) => answers[number].status === 200);
  },

  /** A real browser goes from nothing to the account page and out again; gives what it read. */
  async browse({ edgeUrl, issuer, account }) {
    const { chromium } = await import('../../../web/node_modules/playwright-core/index.mjs');
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--no-first-run'] });
    try {
      const page = await browser.newPage({ baseURL: edgeUrl });
      page.setDefaultTimeout(STEP_MS);
      const problems = [];
      page.on('console', (message) => ['error', 'warning'].includes(message.type()) && problems.push(message.text()));
      page.on('pageerror', (error) => problems.push(String(error)));
      await page.goto('/');
      await page.locator('main').getByRole('link', { name: 'Sign in' }).click();
      await page.waitForURL((url) => url.href.startsWith(issuer));
      await page.getByLabel('E-mail').fill(account.email);
      await page.getByLabel('Password').fill(account.password);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByRole('heading', { name: 'Profile', level: 1 }).waitFor();
      const greeted = await page.locator('main').innerText();
      return { url: page.url(), text: greeted, problems };
    } finally {
      await browser.close();
    }
  },
};

process.on('message', async ({ id, what, options }) => {
  try {
    process.send({ id, result: (await WORK[what](options ?? {})) ?? null });
  } catch (error) {
    process.send({ id, error: error.stack });
  }
});
process.on('disconnect', () => process.exit(0));
