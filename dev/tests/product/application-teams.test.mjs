// Runs the commands of docs/kubernetes/application-teams.md that prove that an application is closed, against an
// edge of this stack in place of `https://$HOST`. The third command needs a cluster with network policies.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { ROOT, startStack } from '../../stack.mjs';

const page = readFileSync(join(ROOT, 'docs/kubernetes/application-teams.md'), 'utf8');
const commands = [...page.matchAll(/^```sh\n(curl [^`]*)\n```$/gm)].map(([, command]) => command);
const folder = mkdtempSync(join(tmpdir(), 'vestibule-teams-'));
const seen = [];
const application = http.createServer((request, response) => {
  seen.push(request.url);
  response.end('orders');
});
let stack;

before(async () => {
  await new Promise((resolve) => { application.listen(0, '127.0.0.1', resolve); });
  const route = (path, guard) => `[[route]]\npath = "${path}"\nguard = "${guard}"\nupstream = "http://127.0.0.1:${application.address().port}"\n`;
  const routes = join(folder, 'routes.toml');
  writeFileSync(routes, `${route('/orders/*', 'page')}${route('/api/*', 'api')}${route('/public/*', 'none')}`);
  stack = await startStack({ store: 'memory:', routes });
});
after(async () => {
  await stack?.stop();
  application.close();
  rmSync(folder, { recursive: true, force: true });
});

const print = async (command, guarded) => {
  const here = command.replace('https://$HOST', stack.edgeUrl);
  assert.notEqual(here, command);
  return (await promisify(execFile)('sh', ['-c', here], { env: { PATH: process.env.PATH, GUARDED: guarded } })).stdout;
};

test('the commands print 401 for a guarded path, and the application receives nothing', async () => {
  assert.equal(commands.length, 2);
  for (const command of commands) for (const guarded of ['/orders/', '/api/7']) assert.equal(await print(command, guarded), '401\n', command);
  assert.deepEqual(seen, []);
});

test('they print 200 where the application is open', async () => {
  for (const command of commands) assert.equal(await print(command, '/public/'), '200\n');
  assert.deepEqual(seen, ['/public/', '/public/']);
});
