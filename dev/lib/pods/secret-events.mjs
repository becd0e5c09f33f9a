// Certificates, keys and passwords that change while pods run: the way docs/operating.md and docs/kubernetes/redis.md say, with the
// files of the pods replaced as the kubelet replaces them.
import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { makeAuthority } from '../authority.mjs';
import { CERTIFICATES, renewCertificates, storeAddress } from '../cluster-secrets.mjs';
import { pause } from '../net.mjs';
import { runJob } from './workload.mjs';

const NAMESPACE = 'vestibule-dev';
const TAKEN_MS = 12_000; // files are looked at every five to ten seconds (docs/operating.md)
const SENTINELS_MS = 75_000; // one after another
const REKEYED_MS = 60_000;
const newKey = () => randomBytes(32).toString('hex');

const textOf = ({ cluster }, name, key) => Buffer.from(cluster.find('Secret', name, NAMESPACE).data[key], 'base64').toString().trim();
const set = ({ cluster }, name, data) => cluster.update('Secret', NAMESPACE, name, data);

/** New certificates of the same authority, as cert-manager renews them. */
const renew = (name, ms = TAKEN_MS) => async (world) => {
  renewCertificates(world.secrets, [name]);
  set(world, name, Object.fromEntries(['ca.crt', 'tls.crt', 'tls.key'].map((file) => [file, readFileSync(join(world.secrets, name, file))])));
  await pause(ms);
};

/** The three steps of docs/kubernetes/tls.md: a new authority beside the old one, certificates of the new one, the new one alone. */
async function authority(world) {
  const folder = join(world.secrets, 'authority');
  const text = (...path) => readFileSync(join(world.secrets, ...path), 'utf8');
  const old = text('authority', 'ca.crt');
  renameSync(folder, `${folder}-before`);
  makeAuthority(folder);
  const fresh = text('authority', 'ca.crt');
  const all = (data) => Object.keys(CERTIFICATES).forEach((name) => set(world, name, data(name)));
  const certificates = (name) => Object.fromEntries(['tls.crt', 'tls.key'].map((file) => [file, text(name, file)]));
  all(() => ({ 'ca.crt': old + fresh }));
  await pause(SENTINELS_MS);
  renewCertificates(world.secrets);
  all(certificates);
  await pause(SENTINELS_MS);
  all(() => ({ 'ca.crt': fresh }));
  await pause(SENTINELS_MS);
}

async function edgeSecret(world) {
  set(world, 'edge', { 'edge-secret': `${newKey()},${textOf(world, 'edge', 'edge-secret')}` });
  await pause(TAKEN_MS);
}

/** The four steps of docs/operating.md: behind, in front, rekey, alone. */
async function encryptionKey(world) {
  const [old, fresh] = [textOf(world, 'session-svc', 'encryption-key'), newKey()];
  for (const ring of [`${old},${fresh}`, `${fresh},${old}`]) {
    set(world, 'session-svc', { 'encryption-key': ring });
    await pause(TAKEN_MS);
  }
  // as docs/kubernetes/redis.md runs it: a job of the operator's, whose user of Redis may walk through all keys
  const { code, output } = await runJob(world.cluster, world.cluster.find('CronJob', 'check-store', NAMESPACE), ['rekey', '--json'], REKEYED_MS);
  if (code !== 0) throw new Error(`rekey ended with code ${code}: ${output}`);
  world.say(`rekey: ${output.trim().replaceAll(/\s+/g, ' ')}`);
  set(world, 'session-svc', { 'encryption-key': fresh });
  await pause(TAKEN_MS);
}

/** Each user knows two passwords for a while: the new one is given out, used, and then the only one. */
async function passwords(world) {
  const users = ['session-svc', 'administrator', 'replication', 'sentinel'];
  const old = Object.fromEntries(users.map((user) => [user, textOf(world, 'redis-users', user)]));
  const fresh = Object.fromEntries(users.map((user) => [user, newKey()]));
  const all = (lines) => set(world, 'redis-users', Object.fromEntries(users.map((user) => [user, `${lines(user)}\n`])));
  all((user) => `${old[user]}\n${fresh[user]}`);
  await pause(SENTINELS_MS);
  set(world, 'session-svc', { store: storeAddress('session-svc', fresh['session-svc']) });
  all((user) => `${fresh[user]}\n${old[user]}`);
  await pause(SENTINELS_MS);
  all((user) => fresh[user]);
  await pause(SENTINELS_MS);
}

/** Starts each Sentinel again three times, inside its container. */
export const AUTHORITY = { name: 'authority of all certificates', run: authority };

export const EVENTS = [
  { name: 'certificate of session-svc', run: renew('session-svc-tls') },
  { name: 'certificate of edge to session-svc', run: renew('edge-session-client') },
  { name: 'certificate of operator to session-svc', run: renew('operator-session-client') },
  { name: 'certificates of Redis and its Sentinels', run: renew('redis-tls', SENTINELS_MS) },
  { name: 'certificate of session-svc to Redis', run: renew('session-svc-redis-client') },
  { name: 'EDGE_SECRET', run: edgeSecret },
  { name: 'encryption key, with rekey', run: encryptionKey },
  { name: 'passwords of Redis', run: passwords },
];
