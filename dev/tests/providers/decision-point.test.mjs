// docs/decision-points.md, with Cedar as the decision point: its route table, its policies, two people.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { ROOT, startStack } from '../../stack.mjs';
import { Client } from '../product/client.mjs';
import { startCedar } from './cedar.mjs';

const page = readFileSync(join(ROOT, 'docs/decision-points.md'), 'utf8');
const block = (language) => new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'm').exec(page)[1];
const folder = mkdtempSync(join(tmpdir(), 'vestibule-decision-point-'));
const application = http.createServer((request, response) => response.end('orders'));
let [stack, cedar] = [];

before(async () => {
  await new Promise((resolve) => { application.listen(0, '127.0.0.1', resolve); });
  cedar = await startCedar(block('text'));
  const routes = join(folder, 'routes.toml');
  const table = block('toml').replace('https://pdp.example.com', cedar.url).replace('http://orders:8080', `http://127.0.0.1:${application.address().port}`);
  assert.ok(table.includes(cedar.url));
  writeFileSync(routes, table);
  stack = await startStack({ store: 'memory:', routes });
});
after(async () => {
  await stack?.stop();
  cedar?.stop();
  application.close();
  rmSync(folder, { recursive: true, force: true });
});

const person = async (account) => {
  const client = new Client();
  await client.signIn(stack, { account });
  return (method) => client.fetch(`${stack.edgeUrl}/orders/7`, { method, headers: { accept: 'application/json', 'sec-fetch-site': 'same-origin' } });
};

test('Cedar permits one person to read and write, and another one to read', async () => {
  const [ada, grace] = [await person(stack.accounts[0]), await person(stack.accounts[1])];
  assert.deepEqual([(await ada('GET')).status, (await ada('POST')).status, (await grace('GET')).status], [200, 200, 200]);
  const denied = await grace('POST');
  assert.equal(denied.status, 403, denied.text);
  assert.deepEqual([denied.json().error, denied.json().reason], ['access_denied', 'policy_denied']);
  assert.equal(cedar.questions.length, 4);
});

test('the question of the document is the one the edge asks', () => {
  const shown = JSON.parse(block('json'));
  const [asked] = cedar.questions;
  const keys = (value) => (value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, keys(inner)])) : typeof value);
  assert.deepEqual(keys(asked), keys(shown));
});

test('while the decision point is away the edge answers 503', async () => {
  const ada = await person(stack.accounts[0]);
  cedar.stop();
  const refused = await ada('DELETE');
  assert.deepEqual([refused.status, refused.json().error], [503, 'decision_point_unavailable']);
});
