// The Secrets of k8s/overlays/dev as files, a folder for each: random passwords and keys, temporary certificates.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { issue, makeAuthority } from './authority.mjs';

const PODS = [0, 1, 2];
const SENTINELS = PODS.map((pod) => `redis-sentinel-${pod}.redis-sentinel`);

/** Holders, names and usages of the certificates, as in the components cert-manager and cert-manager-redis. */
export const CERTIFICATES = {
  'session-svc-tls': { names: ['session-svc-headless', 'session-svc'], usages: ['serverAuth'] },
  'edge-session-client': { names: ['edge.vestibule.svc'], usages: ['clientAuth'] },
  'operator-session-client': { names: ['operator.vestibule.svc'], usages: ['clientAuth'] },
  'redis-tls': { names: [...PODS.map((pod) => `redis-${pod}.redis`), ...SENTINELS, 'redis', 'redis-sentinel', 'localhost'], usages: ['serverAuth', 'clientAuth'] },
  'session-svc-redis-client': { names: ['session-svc.vestibule.svc'], usages: ['clientAuth'] },
};

const RANDOM = [
  'provider/client-secret', 'edge/edge-secret', 'session-svc/encryption-key',
  ...['session-svc', 'administrator', 'replication', 'sentinel'].map((user) => `redis-users/${user}`),
];

/** The address of the component redis for one of its users. */
function storeAddress(user, password, sentinelPassword = password) {
  const files = '/etc/vestibule/redis';
  const parameters = new URLSearchParams({ sentinel_user: user, sentinel_password: sentinelPassword });
  return `rediss-sentinel://${user}:${password}@${SENTINELS.map((name) => `${name}:26379`).join(',')}/sessions`
    + `?${parameters}&ca_file=${files}/ca.crt&cert_file=${files}/tls.crt&key_file=${files}/tls.key`;
}

/** New certificates from the authority in `folder`; for all holders, or for the given ones. */
function renewCertificates(folder, which = Object.keys(CERTIFICATES)) {
  const authority = makeAuthority(join(folder, 'authority'));
  for (const name of which) issue(authority, join(folder, name), CERTIFICATES[name].names, CERTIFICATES[name].usages);
}

/** Writes missing files; a second call changes nothing. */
export function writeSecrets(folder) {
  const put = (name, text) => {
    const file = join(folder, name);
    if (existsSync(file)) return readFileSync(file, 'utf8').trim();
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, `${text()}\n`, { mode: 0o600 });
    return readFileSync(file, 'utf8').trim();
  };
  for (const name of RANDOM) put(name, () => randomBytes(32).toString('hex'));
  for (const [secret, user] of [['session-svc', 'session-svc'], ['operator', 'administrator']]) {
    const password = readFileSync(join(folder, 'redis-users', user), 'utf8').trim().split('\n')[0];
    put(`${secret}/store`, () => storeAddress(user, password));
  }
  const missing = Object.keys(CERTIFICATES).filter((name) => !existsSync(join(folder, name, 'tls.crt')));
  renewCertificates(folder, missing);
}
