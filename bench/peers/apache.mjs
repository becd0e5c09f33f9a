// Debian's Apache with mod_auth_openidc before a small file, for as many cores as this machine has. Needs no root and none of
// the system's configuration: apache2-bin alone installs no service.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { Child } from '../../dev/lib/child.mjs';
import { installDebian } from '../lib/debian.mjs';

const PROGRAM = '/usr/sbin/apache2';
const MODULES = '/usr/lib/apache2/modules';
const THREADS = 25; // of a process; more than the load has connections

let installed;
export function prepareApache(say) {
  const there = existsSync(PROGRAM) && existsSync(join(MODULES, 'mod_auth_openidc.so'));
  installed ??= there ? Promise.resolve() : installDebian(['apache2-bin', 'libapache2-mod-auth-openidc'], say);
  return installed;
}

/** How sessions are kept: the module's settings for each way. */
const SESSIONS = {
  redis: ({ redisPort }) => `OIDCCacheType redis\nOIDCRedisCacheServer 127.0.0.1:${redisPort}`,
  shm: () => '', // its default: memory that the processes of one machine share
  cookie: () => 'OIDCSessionType client-cookie',
};

const configuration = (kind, { folder, port, idp, secret, callback, profile, redisPort }) => `
ServerRoot "${folder}"
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
DefaultRuntimeDir "${folder}"
PidFile "${folder}/apache.pid"
ErrorLog "${folder}/error.log"
LogLevel warn
${process.getuid() === 0 ? 'User www-data\nGroup www-data' : ''}
${['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'auth_openidc'].map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}

ServerLimit ${availableParallelism()}
StartServers ${availableParallelism()}
ThreadsPerChild ${THREADS}
MaxRequestWorkers ${availableParallelism() * THREADS}
MinSpareThreads ${THREADS}
MaxSpareThreads ${(availableParallelism() + 1) * THREADS}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 30

OIDCProviderMetadataURL ${idp.issuer}/.well-known/openid-configuration
OIDCClientID ${idp.clientId}
OIDCClientSecret ${idp.clientSecret}
OIDCRedirectURI http://127.0.0.1:${port}${callback}
OIDCScope "openid profile email"
OIDCPKCEMethod S256
OIDCCryptoPassphrase ${secret}
${SESSIONS[kind]({ redisPort })}

DocumentRoot "${folder}/pages"
<LocationMatch "^(${profile}|${callback})$">
  AuthType openid-connect
  Require valid-user
  ForceType application/json
</LocationMatch>
`;

/** Starts it: {pids, ended, tail, stop}, not yet ready. Workers run as another user where this is root. */
export function startApache(kind, options) {
  const { folder, bytes, ready, profile, redisPid } = options;
  const pages = join(folder, 'pages');
  mkdirSync(pages, { recursive: true });
  [folder, pages].forEach((path) => chmodSync(path, 0o755));
  const frame = '{"sub":""}';
  writeFileSync(join(pages, profile), frame.replace('""', `"${'a'.repeat(bytes - frame.length)}"`));
  writeFileSync(join(pages, ready), 'ready\n');
  const file = join(folder, 'apache.conf');
  writeFileSync(file, configuration(kind, options), { mode: 0o600 });
  const child = new Child('apache', PROGRAM, ['-f', file, '-DFOREGROUND']);
  const log = join(folder, 'error.log');
  return {
    pids() {
      const workers = spawnSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' }).stdout.trim().split('\n').map(Number);
      return [...[child.pid, ...workers].map((pid, at) => [`apache-${at}`, pid]), ...(redisPid ? [['redis', redisPid]] : [])];
    },
    ended: () => child.ended,
    tail: () => `${child.tail()}\n${existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : ''}`,
    stop: () => child.stop(),
  };
}
