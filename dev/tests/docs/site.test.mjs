// The built site in a real browser: search finds a page and opens it, diagrams are drawn, and nothing is asked of anybody else.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { serveSite } from '../../docs/lib/serve.mjs';
import { ROOT } from '../../stack.mjs';

const { chromium } = createRequire(join(ROOT, 'web/package.json'))('playwright-core');
const STEP_MS = 30_000;
let site;
let browser;

before(async () => {
  site = await serveSite(join(ROOT, 'target/docs'));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--no-first-run'],
  });
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

/** A window that remembers what was asked of others and what went wrong. */
async function open(path) {
  const page = await browser.newPage();
  page.setDefaultTimeout(STEP_MS);
  const wrong = [];
  page.on('request', (request) => { if (!request.url().startsWith(site.url) && !request.url().startsWith('data:')) wrong.push(`asked for ${request.url()}`); });
  page.on('response', (response) => { if (response.status() >= 400) wrong.push(`${response.status()} ${response.url()}`); });
  page.on('pageerror', (error) => wrong.push(error.message));
  await page.goto(new URL(path, site.url).href);
  return { page, wrong };
}

test('a search for "refresh" has a hit, which opens', async () => {
  const { page, wrong } = await open('');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.locator('#localsearch-input').fill('refresh');
  const hit = page.locator('#localsearch-list a.result').first();
  assert.match((await hit.innerText()).toLowerCase(), /refresh/);
  const address = await hit.getAttribute('href');
  await hit.click();
  await page.waitForURL((url) => address.startsWith(url.pathname) && url.pathname !== '/');
  assert.match((await page.locator('main').innerText()).toLowerCase(), /refresh/);
  assert.deepEqual(wrong, []);
});

test('the start page is the README, with its diagram and its picture', async () => {
  const { page, wrong } = await open('');
  await page.locator('.diagram svg').waitFor();
  assert.match(await page.locator('h1').innerText(), /^Vestibule\b/);
  assert.ok(await page.locator('main img').first().evaluate((image) => image.decode().then(() => image.naturalWidth)) > 0);
  assert.deepEqual(wrong, []);
});
