// Runs each example of docs/verify.md: with assertions of a scripted issuer, good and bad, and behind a real edge.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { VERIFIERS } from '../../lib/verify.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { Client } from '../product/client.mjs';
import { Issuer } from './issuer.mjs';

const START_MS = 60_000;
const ROTATION_MS = 20_000; // an example fetches keys for an unknown key ID every ten seconds
const FORGED = 30; // unknown key IDs in a row
const { attacks } = JSON.parse(readFileSync(join(ROOT, 'examples/verify/attacks.json'), 'utf8'));
const names = Object.keys(VERIFIERS);
const matrix = new Map(attacks.map(({ name }) => [name, {}]));

/** Starts an example; `port` is its port. */
function launch(name, port, settings) {
  const { command, args, cwd, env } = VERIFIERS[name];
  const { PATH, HOME } = process.env;
  return new Child(name, command, args, { cwd, env: { PATH, HOME, ...env, PORT: String(port), ...settings } });
}

/** Waits until an example answers. Without an assertion it has to answer 401. */
async function isGuarding(child, url) {
  await until(START_MS, async () => {
    if (child.ended) throw new Error(`${child.name} ended:\n${child.tail()}`);
    return (await probe(url)).status > 0;
  }, () => `${child.name} does not answer:\n${child.tail()}`);
  assert.equal((await probe(url)).status, 401, child.tail());
}

/** Sends a GET with exactly these headers: `[name, value, name, value, …]`. */
function get(url, headers) {
  return new Promise((resolve, reject) => {
    const { host } = new URL(url);
    const request = http.get(url, { agent: false, headers: ['Host', host, 'Connection', 'close', ...headers] }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => { text += chunk; }).on('end', () => resolve({ status: response.statusCode, text }));
    });
    request.on('error', reject);
  });
}

test('docs/verify.md shows the Express example as it is, and how many lines each example has', () => {
  const page = readFileSync(join(ROOT, 'docs/verify.md'), 'utf8');
  const source = (path) => readFileSync(join(ROOT, 'docs', path), 'utf8');
  assert.ok(page.includes(`\n\`\`\`js\n${source('../examples/verify/express/app.js')}\`\`\`\n`));
  const rows = page.split('\n').filter((line) => /^\| \[.*\(\.\.\/examples\/verify\//.test(line));
  assert.equal(rows.length, names.length);
  for (const row of rows) {
    const lines = [...row.matchAll(/\((\.\.[^)]+)\)/g)].map(([, path]) => source(path).split('\n').length - 1);
    assert.equal(row.split(' | ')[2], lines.join(' + '), row);
  }
});

describe('an example', { concurrency: true }, () => {
  for (const name of names) {
    describe(name, { concurrency: 1 }, () => {
      const issuer = new Issuer();
      let [url, child] = [];
      const greet = (user) => get(url, ['X-Auth-Assertion', issuer.sign(url, user)]);

      before(async () => {
        await issuer.start();
        const port = await freePort();
        url = `http://127.0.0.1:${port}`;
        child = launch(name, port, { VESTIBULE_ISSUER: issuer.url, AUDIENCE: url, KEYS_URL: `${issuer.url}/keys.json` });
        await isGuarding(child, url);
      });
      after(async () => {
        await child?.stop();
        await issuer.stop();
      });

      test('greets its users', async () => {
        for (const user of ['ada', 'grace']) {
          assert.deepEqual(await greet(user), { status: 200, text: `Hello ${user}@example.test\n` }, child.tail());
        }
      });

      test(`refuses ${attacks.length} attacks`, async () => {
        for (const attack of attacks) matrix.get(attack.name)[name] = (await get(url, issuer.attack(url, attack))).status;
        const passed = attacks.filter((attack) => matrix.get(attack.name)[name] !== 401);
        assert.deepEqual(passed.map((attack) => `${attack.name}: ${matrix.get(attack.name)[name]}`), [], child.tail());
        assert.equal(issuer.asked.other, 0, 'it fetched the keys that an assertion names');
        assert.equal((await greet('ada')).status, 200, child.tail());
      });

      test('reads new keys without a restart, and bounds its requests for keys', async () => {
        issuer.rotate();
        await until(ROTATION_MS, async () => (await greet('grace')).status === 200, () => `the new key is not accepted\n${child.tail()}`);
        const before = issuer.asked.keys;
        const most = VERIFIERS[name].fetchesForEachKey ? FORGED : 2;
        for (let count = 0; count < FORGED; count += 1) {
          const forged = issuer.sign(url, 'ada', { header: { kid: `unknown-${count}` }, key: 'other' });
          assert.equal((await get(url, ['X-Auth-Assertion', forged])).status, 401);
        }
        assert.ok(issuer.asked.keys - before <= most, `${issuer.asked.keys - before} requests for keys`);
        assert.equal((await greet('grace')).status, 200, child.tail());
      });

      for (const missing of ['VESTIBULE_ISSUER', 'AUDIENCE']) {
        test(`accepts no assertion without ${missing}`, async () => {
          const port = await freePort();
          const at = `http://127.0.0.1:${port}`;
          const settings = { VESTIBULE_ISSUER: issuer.url, AUDIENCE: at, KEYS_URL: `${issuer.url}/keys.json` };
          delete settings[missing];
          const unset = launch(name, port, settings);
          try {
            const answer = await until(START_MS, async () => {
              if (unset.ended) return { status: 0 };
              return get(at, ['X-Auth-Assertion', issuer.sign(at, 'ada')]).catch(() => undefined);
            }, () => `neither an answer nor an end:\n${unset.tail()}`);
            assert.notEqual(answer.status, 200);
          } finally {
            await unset.stop();
          }
        });
      }
    });
  }
});

describe('behind a real edge', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-verify-'));
  const children = [];
  let stack;
  before(async () => {
    const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await freePort()])));
    const routes = join(folder, 'routes.toml');
    const route = (name) => `[[route]]\npath = "/${name}/*"\nstrip_prefix = true\nguard = "api"\nupstream = "http://127.0.0.1:${ports[name]}"\nupstream_jwt = true\n`;
    writeFileSync(routes, names.map(route).join('\n'));
    const key = join(folder, 'assertion-key.pem');
    writeFileSync(key, generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
    stack = await startStack({ routes, edgeEnv: { EDGE_UPSTREAM_JWT_KEY_FILE: key } });
    await Promise.all(names.map(async (name) => {
      const upstream = `http://127.0.0.1:${ports[name]}`;
      const child = launch(name, ports[name], { VESTIBULE_ISSUER: stack.edgeUrl, AUDIENCE: upstream });
      children.push(child);
      await isGuarding(child, upstream);
    }));
  });
  after(async () => {
    await Promise.all(children.map((child) => child.stop()));
    await stack?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('every example greets each signed-in user, whatever the client sends as assertion', async () => {
    const clients = await Promise.all(stack.accounts.map(async (account) => {
      const client = new Client();
      await client.signIn(stack, { account });
      return [account, client];
    }));
    for (const name of names) {
      for (const [{ email }, client] of clients) {
        for (const header of [undefined, 'X-Auth-Assertion', 'X_Auth_Assertion']) {
          const answer = await client.fetch(`${stack.edgeUrl}/${name}/`, { headers: header && { [header]: 'forged' } });
          assert.equal(answer.status, 200, `${name}, ${header}: ${answer.text}`);
          assert.equal(answer.text, `Hello ${email}\n`);
        }
      }
    }
  });

  test('no example receives a request without a session', async () => {
    for (const name of names) {
      const answer = await get(`${stack.edgeUrl}/${name}/`, ['X-Auth-Assertion', 'forged']);
      assert.equal(answer.status, 401);
      assert.doesNotMatch(answer.text, /No valid assertion/); // the edge answered
    }
  });
});

after(() => {
  const rows = [...matrix].map(([attack, answers]) => `${attack.padEnd(40)}${names.map((name) => String(answers[name] ?? '-').padStart(9)).join('')}`);
  process.stdout.write(`\n${''.padEnd(40)}${names.map((name) => name.padStart(9)).join('')}\n${rows.join('\n')}\n`);
});
