// Applications that people put behind a sign-in: how to start each, and what a person does with it.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { freePort } from '../../../lib/net.mjs';
import { ROOT } from '../../../stack.mjs';
import { NAVIGATION } from '../../product/client.mjs';
import { startProgram } from '../drivers/program.mjs';
import { PYTHON } from '../drivers/python.mjs';
import { submit } from '../html.mjs';

const HERE = join(ROOT, 'dev/tests/providers/applications');
const run = promisify(execFile);

/** The headers of requests by a page's own script or form. */
const sameOrigin = (url) => ({ origin: new URL(url).origin, referer: url, 'sec-fetch-site': 'same-origin' });

async function start(name, args, port, path = '/', env = {}) {
  return startProgram(name, PYTHON, args, { env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env }, ready: `http://127.0.0.1:${port}${path}` });
}

/**
 * By name: `start()` → {port, stop()}; `use(person, url, front)`, the actions of a signed-in person at `url`;
 * `entrance`, a page of it.
 */
export const APPLICATIONS = {
  datasette: {
    version: '0.65.5',
    entrance: '/shop/fruit',
    async start() {
      const folder = mkdtempSync(join(tmpdir(), 'vestibule-datasette-'));
      const port = await freePort();
      execFileSync(PYTHON, ['-c', 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript("create table fruit (name text, price integer); insert into fruit values (\'pear\', 3), (\'fig\', 5);")', join(folder, 'shop.db')]);
      const child = await start('datasette', ['-m', 'datasette', join(folder, 'shop.db'), '--host', '127.0.0.1', '--port', String(port)], port, '/-/versions.json');
      return { port, stop: async () => { await child.stop(); rmSync(folder, { recursive: true, force: true }); } };
    },
    async use(person, url) {
      const page = await person.navigate(`${url}/shop/fruit`);
      assert.equal(page.status, 200, page.text);
      assert.match(page.text, /pear/);
      const style = /href="(\/-\/static\/app\.css[^"]*)"/.exec(page.text)[1];
      assert.equal((await person.fetch(`${url}${style}`)).status, 200, 'its style sheet');
      const dearest = await person.fetch(`${url}/shop.json?${new URLSearchParams({ sql: "select name from fruit where price > :price || ''", price: '3', _shape: 'array' })}`, { headers: sameOrigin(url) });
      assert.equal(dearest.status, 200, dearest.text);
      const sorted = await person.fetch(`${url}/shop/fruit.json?_shape=array&_sort_desc=price`);
      assert.deepEqual(sorted.json().map(({ name }) => name), ['fig', 'pear']);
      const moved = await person.navigate(`${url}/shop/`);
      assert.equal(new URL(moved.headers.get('location'), url).origin, new URL(url).origin, 'its redirects stay');
    },
  },

  'Jupyter Server': {
    version: '2.21.1',
    entrance: '/api/status',
    async start() {
      const folder = mkdtempSync(join(tmpdir(), 'vestibule-jupyter-'));
      const port = await freePort();
      // Its own sign-in is off, because the edge handles sign-in. All other settings are defaults.
      const child = await start('jupyter', ['-m', 'jupyter_server', '--no-browser', '--allow-root', '--ip=127.0.0.1', `--port=${port}`, '--IdentityProvider.token=', `--ServerApp.root_dir=${folder}`], port, '/api', {
        HOME: folder, JUPYTER_RUNTIME_DIR: join(folder, 'run'), IPYTHONDIR: join(folder, 'ipython'),
      });
      return { port, stop: async () => { await child.stop(); rmSync(folder, { recursive: true, force: true }); } };
    },
    async use(person, url) {
      const origin = new URL(url);
      await person.navigate(`${url}/login`); // every page sets the cookie that its forms require
      const headers = { ...sameOrigin(url), 'content-type': 'application/json', 'x-xsrftoken': decodeURIComponent(person.cookies(url).get('_xsrf') ?? '') };
      const note = await person.fetch(`${url}/api/contents/note-${origin.port}.txt`, { method: 'PUT', headers, body: JSON.stringify({ type: 'file', format: 'text', content: 'kept' }) });
      assert.equal(note.status, 201, note.text);
      const kernel = await person.fetch(`${url}/api/kernels`, { method: 'POST', headers, body: JSON.stringify({ name: 'python3' }) });
      assert.equal(kernel.status, 201, kernel.text);
      const { id } = kernel.json();
      const cookie = [...person.cookies(url)].map(([name, value]) => `${name}=${value}`).join('; ');
      const { stdout } = await run(PYTHON, [join(HERE, 'kernel.py'), `ws://${origin.host}/api/kernels/${id}/channels`, cookie, origin.origin, '6 * 7']);
      assert.equal(stdout.trim(), '42', 'what the kernel answers over its WebSocket');
      const gone = await person.fetch(`${url}/api/kernels/${id}`, { method: 'DELETE', headers });
      assert.equal(gone.status, 204, gone.text);
    },
  },

  Django: {
    version: '5.2.19',
    entrance: '/form',
    async start() {
      const port = await freePort();
      const child = await start('django', [join(HERE, 'forms.py'), String(port)], port);
      return { port, stop: () => child.stop() };
    },
    async use(person, url, front) {
      const page = await person.navigate(`${url}/form`);
      assert.equal(page.status, 200, page.text);
      assert.match(page.text, /<p id="subject">[^<]+<\/p>/, 'it knows who is signed in');
      if (front === 'edge') assert.match(page.text, /<p id="user">ada<\/p>/, 'under the name it reads');
      const { url: action, headers, ...filled } = submit(page, 'name="said"', { said: 'grüß dich' });
      const answer = await person.fetch(action, { ...filled, headers: { ...NAVIGATION, ...headers, ...sameOrigin(page.url) } });
      assert.equal(answer.status, 302, `the form: ${answer.status} ${/<title>(.*?)<\/title>/.exec(answer.text)?.[1] ?? answer.text.slice(0, 300)}`);
      assert.equal(answer.headers.get('location'), `${url}/form`, 'the address it makes of itself');
      assert.match((await person.navigate(`${url}/form`)).text, /grüß dich/);
      const forged = await person.fetch(action, { ...filled, headers: { ...NAVIGATION, ...headers, origin: 'https://evil.example', referer: 'https://evil.example/', 'sec-fetch-site': 'cross-site' } });
      assert.equal(forged.status, 403, 'a form of another site');
    },
  },
};
