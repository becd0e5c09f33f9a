// The last container of compose.yaml: waits until the edge is ready, prints the address and the accounts, and ends.
//
//   node dev/compose/welcome.mjs URL
import { setTimeout as pause } from 'node:timers/promises';

import { ACCOUNTS } from '../idp/lib/accounts.mjs';

const READY = 'http://edge:9300/readyz';
const LIMIT_MS = 120_000;
const POLL_MS = 300;
const [url] = process.argv.slice(2);

const begun = Date.now();
const isReady = () => fetch(READY).then((answer) => answer.ok, () => false);
while (!(await isReady())) {
  if (Date.now() - begun > LIMIT_MS) {
    process.stderr.write(`the edge did not become ready within ${LIMIT_MS / 1000} s; its log says why (docker compose logs edge)\n`);
    process.exit(1);
  }
  await pause(POLL_MS);
}

const longest = (member) => Math.max(...ACCOUNTS.map((account) => account[member].length));
const accounts = ACCOUNTS.map(({ email, password, name }) => `      ${email.padEnd(longest('email'))}   ${password.padEnd(longest('password'))}   (${name})`);
process.stdout.write(['', '  Vestibule is running. Open:', '', `      ${url}`, '', '  and sign in with one of these:', '', ...accounts, '', ''].join('\n'));
