// The development identity provider: the certified oidc-provider with two accounts, a sign-in page and one client.
//
//   node dev/idp/server.mjs --port 9000 --redirect-uri http://127.0.0.1:3000/api/auth/callback
//
// When ready it prints one line of JSON on standard output: {"issuer","client_id","client_secret","pid"}.
// It listens on loopback by default. Its sign-in page shows the accounts with their passwords. Never expose it.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { parseArgs } from 'node:util';

import { addCrowd } from './lib/accounts.mjs';
import { recordGrants } from './lib/grants-log.mjs';
import { createProvider } from './lib/provider.mjs';
import { createRequestHandler } from './lib/requests.mjs';
import { openState } from './lib/state.mjs';

const HELP = `Usage: node dev/idp/server.mjs [options]

  --listen ADDRESS                   address to listen on: loopback, or all of a container's (127.0.0.1)
  --port PORT                        port to listen on; 0 takes a free one (9000)
  --issuer URL                       its name, and where browsers and services reach it (http://127.0.0.1:PORT)
  --tls-cert-file FILE               speak TLS with this certificate
  --tls-key-file FILE                and this key
  --client-id ID                     the one registered client (vestibule-dev)
  --client-secret TEXT               its secret; by default a new one at each start
  --client-secret-file FILE          the same, read from a file
  --client-auth METHOD               client_secret_basic | client_secret_post | private_key_jwt (client_secret_basic)
  --client-jwks FILE                 public keys of the client as a JWK set, for private_key_jwt
  --client-jwks-uri URL              where the client publishes them instead
  --require-dpop-nonce               proofs of bound tokens (DPoP) have to repeat a nonce
  --redirect-uri URL                 allowed callback, may be repeated
  --post-logout-redirect-uri URL     allowed target after sign-out, may be repeated
  --backchannel-logout-uri URL       where logout tokens are sent
  --resource URL                     a resource access tokens can be asked for (RFC 8707), may be repeated
  --registration                     clients may register themselves (RFC 7591)
  --machine-client ID                a client with the same secret that gets tokens for itself (client credentials)
  --access-token-ttl SECONDS         lifetime of access tokens (300)
  --id-token-ttl SECONDS             lifetime of ID tokens (3600)
  --refresh-token-ttl SECONDS        lifetime of refresh tokens (1209600)
  --people COUNT                     so many more people, person-1@example.test with the password person-1-password and so on (0)
  --groups COUNT                     how many groups each of these people is in (0)
  --disabled FILE                    accounts that are disabled, a sub in each line; read whenever one is needed
  --log FILE                         log of grants, refusals and logout tokens, a line of JSON for each; tokens as hashes
  --state FILE                       keep keys, sign-ins and grants here across restarts (memory only when absent)
  --help                             this text
`;

function whole(name, text) {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number, got "${text}"`);
  return value;
}

const fileOf = (values, name) => (values[name] === undefined ? undefined : readFileSync(values[name], 'utf8'));

function readOptions() {
  const { values } = parseArgs({
    options: {
      listen: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '9000' },
      issuer: { type: 'string' },
      'tls-cert-file': { type: 'string' },
      'tls-key-file': { type: 'string' },
      'client-id': { type: 'string', default: 'vestibule-dev' },
      'client-secret': { type: 'string' },
      'client-secret-file': { type: 'string' },
      'client-auth': { type: 'string', default: 'client_secret_basic' },
      'client-jwks': { type: 'string' },
      'client-jwks-uri': { type: 'string' },
      'require-dpop-nonce': { type: 'boolean', default: false },
      'redirect-uri': { type: 'string', multiple: true, default: [] },
      'post-logout-redirect-uri': { type: 'string', multiple: true, default: [] },
      'backchannel-logout-uri': { type: 'string' },
      resource: { type: 'string', multiple: true, default: [] },
      registration: { type: 'boolean', default: false },
      'machine-client': { type: 'string' },
      'access-token-ttl': { type: 'string', default: '300' },
      'id-token-ttl': { type: 'string', default: '3600' },
      'refresh-token-ttl': { type: 'string', default: '1209600' },
      people: { type: 'string', default: '0' },
      groups: { type: 'string', default: '0' },
      disabled: { type: 'string' },
      log: { type: 'string' },
      state: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const [cert, key] = [fileOf(values, 'tls-cert-file'), fileOf(values, 'tls-key-file')];
  if ((cert === undefined) !== (key === undefined)) throw new Error('--tls-cert-file and --tls-key-file need each other');
  return {
    listen: values.listen,
    port: whole('port', values.port),
    issuer: values.issuer,
    tls: cert === undefined ? undefined : { cert, key },
    clientId: values['client-id'],
    clientSecret: values['client-secret'] ?? fileOf(values, 'client-secret-file')?.trim(),
    clientAuth: values['client-auth'],
    clientJwksFile: values['client-jwks'],
    clientJwksUri: values['client-jwks-uri'],
    requireDpopNonce: values['require-dpop-nonce'],
    redirectUris: values['redirect-uri'],
    postLogoutRedirectUris: values['post-logout-redirect-uri'],
    backchannelLogoutUri: values['backchannel-logout-uri'],
    resources: values.resource,
    registration: values.registration,
    machineClient: values['machine-client'],
    accessTokenTtl: whole('access-token-ttl', values['access-token-ttl']),
    idTokenTtl: whole('id-token-ttl', values['id-token-ttl']),
    refreshTokenTtl: whole('refresh-token-ttl', values['refresh-token-ttl']),
    people: whole('people', values.people),
    groups: whole('groups', values.groups),
    disabledFile: values.disabled,
    logFile: values.log,
    stateFile: values.state,
  };
}

let options;
try {
  options = readOptions();
} catch (error) {
  process.stderr.write(`${HELP}\n${error.message}\n`);
  process.exit(2);
}

let handle = (_request, response) => response.writeHead(503).end();
const answer = (request, response) => handle(request, response);
const server = options.tls ? https.createServer(options.tls, answer) : http.createServer(answer);
server.on('error', (error) => {
  const told = error.code === 'EADDRINUSE' ? `port ${options.port} on ${options.listen} is taken; choose another with --port` : error.message;
  process.stderr.write(`development provider: ${told}\n`);
  process.exit(1);
});
server.listen(options.port, options.listen, async () => {
  try {
    const issuer = options.issuer ?? `${options.tls ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
    const state = await openState(options.stateFile);
    const clientSecret = options.clientSecret ?? state.clientSecret;
    const provider = createProvider({ ...options, issuer, clientSecret, state });
    addCrowd(options.people, options.groups);
    if (options.logFile) recordGrants(provider, options.logFile);
    handle = createRequestHandler(provider, { issuer, redirectUris: options.redirectUris });
    process.stdout.write(`${JSON.stringify({ issuer, client_id: options.clientId, client_secret: clientSecret, pid: process.pid })}\n`);

    let stopping = false;
    const stop = async () => {
      if (stopping) return;
      stopping = true;
      server.close();
      server.closeAllConnections();
      await state.close();
      process.exit(0);
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  } catch (error) {
    process.stderr.write(`development provider: ${error.stack}\n`);
    process.exit(1);
  }
});
