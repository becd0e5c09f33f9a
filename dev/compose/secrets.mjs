// The first container of compose.yaml: makes missing secrets, each for the one service that reads it, and gives the
// provider its folder. Runs as root, without a network, and ends.
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [secrets = '/secrets', state = '/state'] = process.argv.slice(2);

/** The reader of each secret: the user IDs are those of the Containerfile. */
const USERS = { edge: 10001, 'session-svc': 10002, provider: 10005 };
const FILES = {
  'client-secret': { size: 32, readers: ['edge', 'session-svc', 'provider'] },
  'edge-secret': { size: 32, readers: ['edge'] },
  'encryption-key': { size: 32, readers: ['session-svc'] },
};

for (const [reader, user] of Object.entries(USERS)) {
  mkdirSync(join(secrets, reader), { recursive: true });
  own(join(secrets, reader), user, 0o500);
}
for (const [name, { size, readers }] of Object.entries(FILES)) {
  const [first] = readers.map((reader) => join(secrets, reader, name)).filter(existsSync);
  const value = first ? readFileSync(first, 'utf8') : `${randomBytes(size).toString('hex')}\n`;
  for (const reader of readers) {
    const file = join(secrets, reader, name);
    if (!existsSync(file)) writeFileSync(file, value, { mode: 0o400 });
    own(file, USERS[reader], 0o400);
  }
}
own(state, USERS.provider, 0o700);

function own(path, user, mode) {
  if (process.getuid() === 0) chownSync(path, user, user);
  chmodSync(path, mode);
}
