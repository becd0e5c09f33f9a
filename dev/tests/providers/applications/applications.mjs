// Applications that people put behind a sign-in: how to start each, and what a person does with it.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { freePort } from '../../../lib/net.mjs';
import { ROOT } from '../../../stack.mjs';
import { NAVIGATION } from '../../product/client.mjs';
import { block } from '../documents.mjs';
import { startProgram } from '../drivers/program.mjs';
import { PYTHON } from '../drivers/python.mjs';
import { submit } from '../html.mjs';

const HERE = join(ROOT, 'dev/tests/providers/applications');
const run = promisify(execFile);
const PYTHON_OF_BUILDER = join(ROOT, '.cache/applications/bin/python');

/** The headers of requests by a page's own script or form, and by another site's. */
const sameOrigin = (url) => ({ origin: new URL(url).origin, referer: url, 'sec-fetch-site': 'same-origin' });
const CROSS_SITE = { origin: 'https://evil.example', referer: 'https://evil.example/', 'sec-fetch-site': 'cross-site' };

async function start(name, args, port, path = '/', env = {}) {
  return startProgram(name, PYTHON, args, { env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env }, ready: `http://127.0.0.1:${port}${path}` });
}

/** Starts a program of Prometheus's family with this configuration; `storage` is the flag of its folder. */
async function startMonitoring(program, configuration, storage, ...more) {
  const folder = mkdtempSync(join(tmpdir(), `vestibule-${program}-`));
  const [port, file] = [await freePort(), join(folder, 'configuration.yml')];
  writeFileSync(file, configuration);
  const args = [`--config.file=${file}`, `${storage}=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, ...more];
  const child = await startProgram(program, program, args, { ready: `http://127.0.0.1:${port}/-/ready` });
  return { port, stop: async () => { await child.stop(); rmSync(folder, { recursive: true, force: true }); } };
}

/**
 * By name: `start()` → {port, stop()}; `use(person, url, front)`, the actions of a signed-in person at `url` behind
 * `front`; `entrance`, a page of it.
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

  Prometheus: {
    version: '2.42.0',
    entrance: '/config',
    start: () => startMonitoring('prometheus', '', '--storage.tsdb.path'),
    async use(person, url, front) {
      const moved = await person.navigate(`${url}/`);
      assert.equal(new URL(moved.headers.get('location'), url).origin, url, 'its redirects stay');
      const page = await person.navigate(new URL(moved.headers.get('location'), url).href);
      assert.equal(page.status, 200, page.text);
      const query = { method: 'POST', body: new URLSearchParams({ query: 'vector(7)' }) };
      const answer = await person.fetch(`${url}/api/v1/query`, { ...query, headers: sameOrigin(page.url) });
      assert.equal(answer.json().data.result[0].value[1], '7');
      const forged = await person.fetch(`${url}/api/v1/query`, { ...query, headers: CROSS_SITE });
      assert.equal(forged.status, front === 'edge' ? 403 : 200, 'only the edge itself rejects requests of other sites');
    },
  },

  Alertmanager: {
    version: '0.25.0',
    entrance: '/',
    start: () => startMonitoring('prometheus-alertmanager', 'route: {receiver: none}\nreceivers: [{name: none}]\n', '--storage.path', '--cluster.listen-address='),
    async use(person, url, front) {
      const silence = { matchers: [{ name: 'alertname', value: `Disk${new URL(url).port}`, isRegex: false }], startsAt: new Date().toISOString(), endsAt: new Date(Date.now() + 60_000).toISOString(), createdBy: 'ada', comment: 'known' };
      const write = (headers) => person.fetch(`${url}/api/v2/silences`, { method: 'POST', body: JSON.stringify(silence), headers: { 'content-type': 'application/json', ...headers } });
      const made = await write(sameOrigin(`${url}/`));
      assert.equal(made.status, 200, made.text);
      assert.ok((await person.fetch(`${url}/api/v2/silences`)).json().some(({ id }) => id === made.json().silenceID));
      if (front === 'edge') assert.equal((await write(CROSS_SITE)).status, 403, 'a request of another site');
    },
  },

  'Superset and Airflow': {
    title: 'Flask-AppBuilder (Superset, Airflow)',
    version: '5.3.0',
    entrance: '/',
    async start() {
      const folder = mkdtempSync(join(tmpdir(), 'vestibule-builder-'));
      const [port, settings] = [await freePort(), join(folder, 'settings.py')];
      writeFileSync(settings, `${block('Superset and Airflow', 'python')}\nSESSION_COOKIE_NAME = "application"\n`); // as its page says for http
      const child = await startProgram('builder', PYTHON_OF_BUILDER, [join(HERE, 'builder.py'), String(port), join(folder, 'users.db'), settings], { env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }, ready: `http://127.0.0.1:${port}/` });
      return { port, stop: async () => { await child.stop(); rmSync(folder, { recursive: true, force: true }); } };
    },
    async use(person, url) {
      const anonymous = await person.navigate(`${url}/`);
      assert.equal(anonymous.status, 200, anonymous.text);
      assert.doesNotMatch(anonymous.text, /\bada\b/);
      await person.navigate(`${url}/login/`);
      assert.match((await person.navigate(`${url}/`)).text, /\bada\b/, 'its page names the user');
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
    async use(person, url) {
      const page = await person.navigate(`${url}/form`);
      assert.equal(page.status, 200, page.text);
      assert.match(page.text, /<p id="subject">[^<]+<\/p>/, 'it knows who is signed in');
      assert.match(page.text, /<p id="user">ada<\/p>/, 'under the name it reads');
      const { url: action, headers, ...filled } = submit(page, 'name="said"', { said: 'grüß dich' });
      const answer = await person.fetch(action, { ...filled, headers: { ...NAVIGATION, ...headers, ...sameOrigin(page.url) } });
      assert.equal(answer.status, 302, `the form: ${answer.status} ${/<title>(.*?)<\/title>/.exec(answer.text)?.[1] ?? answer.text.slice(0, 300)}`);
      assert.equal(answer.headers.get('location'), `${url}/form`, 'the address it makes of itself');
      assert.match((await person.navigate(`${url}/form`)).text, /grüß dich/);
      const forged = await person.fetch(action, { ...filled, headers: { ...NAVIGATION, ...headers, ...CROSS_SITE } });
      assert.equal(forged.status, 403, 'a form of another site');
    },
  },
};
