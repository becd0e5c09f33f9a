// An MCP client of the SDK knows only the address of an MCP server behind the edge. The provider is real.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client as Browser } from '../product/client.mjs';
import { startServer } from './server.mjs';

/** Where the provider sends the browser back to. The test reads the code from the address and does not open it. */
const REDIRECT = 'http://127.0.0.1:8976/api/auth/callback';
const WAIT_MS = 60_000;
const SHORT_MS = 5_000; // lifetime of access tokens: a token is used and then expires within a test

const folder = mkdtempSync(join(tmpdir(), 'vestibule-mcp-'));
const routes = join(folder, 'routes.toml');
let [stack, upstream] = [];

const writeRoutes = (scopes) => writeFileSync(routes, ['/mcp', '/other'].map((path) => `
[[route]]
path = "${path}"
guard = "api"
upstream = "${upstream.url}"
[route.bearer]
scopes = ${JSON.stringify(scopes)}
`).join(''));

before(async () => {
  upstream = await startServer();
  writeRoutes(['orders:read']);
  const ports = { edge: await freePort() };
  const edge = `http://127.0.0.1:${ports.edge}`;
  stack = await startStack({
    ports, routes, registration: true, resources: [`${edge}/mcp`, `${edge}/other`], accessTokenTtl: SHORT_MS / 1000, edgeEnv: { OIDC_CLOCK_TOLERANCE: '0' },
  });
});
after(async () => {
  await stack?.stop();
  await upstream?.stop();
  rmSync(folder, { recursive: true });
});

/** What an application implements for the SDK: it keeps what it is given, and opens the browser. */
class Application {
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: 'A command line', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  saved = { tokens: [] };
  opened = [];

  clientInformation() { return this.saved.client; }
  saveClientInformation(client) { this.saved.client = client; }
  tokens() { return this.saved.tokens.at(-1); }
  saveTokens(tokens) { this.saved.tokens.push(tokens); }
  codeVerifier() { return this.saved.verifier; }
  saveCodeVerifier(verifier) { this.saved.verifier = verifier; }
  redirectToAuthorization(url) { this.opened.push(url); }
}

const transportOf = (application, path = '/mcp') => new StreamableHTTPClientTransport(new URL(path, stack.edgeUrl), { authProvider: application });

/** Signs the user in with a browser at the address that the application opened. */
async function signIn(application) {
  const back = await new Browser().authorize(stack, { login: application.opened.at(-1).href });
  await transportOf(application).finishAuth(new URL(back).searchParams.get('code'));
}

async function connect(application) {
  const client = new Client({ name: 'a command line', version: '1.0.0' });
  await client.connect(transportOf(application));
  return client;
}

/** A client whose user has signed in. */
async function signedIn() {
  const application = new Application();
  await assert.rejects(connect(application), UnauthorizedError);
  await signIn(application);
  return { application, client: await connect(application) };
}

const caller = async (client) => JSON.parse((await client.callTool({ name: 'whoami' })).content[0].text);

test('a client that knows only the address registers, signs its user in and calls a tool', async () => {
  const { application, client } = await signedIn();
  const { searchParams } = application.opened[0];
  assert.equal(searchParams.get('resource'), `${stack.edgeUrl}/mcp`);
  assert.equal(searchParams.get('scope'), 'orders:read');
  assert.equal(searchParams.get('code_challenge_method'), 'S256');
  assert.deepEqual((await client.listTools()).tools.map(({ name }) => name), ['whoami']);
  const seen = await caller(client);
  assert.ok(seen['x-auth-subject']);
  assert.equal(seen['x-auth-issuer'], stack.issuer);
  assert.equal(seen['x-auth-client'], application.saved.client.client_id);
  assert.equal(seen.authorization, undefined, 'the server gets no token');
  await client.close();
});

test('an expired token is refreshed while the client goes on calling', async () => {
  const { application, client } = await signedIn();
  await until(WAIT_MS, async () => {
    await caller(client);
    return application.saved.tokens.length > 1;
  }, () => 'the client refreshed no token');
  assert.equal(application.opened.length, 1, 'the user signed in once');
  await client.close();
});

test('a token for one server opens no other', async () => {
  const { application, client } = await signedIn();
  await until(WAIT_MS, async () => {
    await caller(client); // refreshes the token if it has expired
    const headers = { authorization: `Bearer ${application.tokens().access_token}`, accept: 'application/json, text/event-stream' };
    const answer = await fetch(`${stack.edgeUrl}/other`, { method: 'POST', headers, body: '{}' });
    assert.equal(answer.status, 401);
    const challenge = answer.headers.get('www-authenticate');
    assert.match(challenge, /error="invalid_token"/);
    return /for another resource/.test(challenge);
  }, () => 'the token was rejected for another cause each time');
  await client.close();
});

test('a missing scope is named, and the next sign-in requests it', async () => {
  const { application, client } = await signedIn();
  writeRoutes(['orders:read', 'orders:write']);
  let error;
  await until(WAIT_MS, async () => {
    error = await caller(client).then(() => undefined, (rejected) => rejected);
    return error !== undefined;
  }, () => 'the route still accepts the token');
  // This client refreshes its token first, which brings no further scope, and then gives up.
  assert.equal(error.code, 403);
  assert.equal(application.opened.length, 1);
  // The client is registered for its first scopes alone: it registers again.
  application.saved = { tokens: [] };
  await assert.rejects(connect(application), UnauthorizedError);
  assert.equal(application.opened.at(-1).searchParams.get('scope'), 'orders:read orders:write');
  await signIn(application);
  const again = await connect(application);
  assert.ok((await caller(again))['x-auth-subject']);
  await again.close();
});
