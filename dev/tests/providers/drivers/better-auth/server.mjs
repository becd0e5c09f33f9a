// better-auth with its OAuth provider, set up as its documentation says, with the memory adapter. SIGHUP retires the
// key; the next signature creates another one.
import http from 'node:http';

import { oauthProvider } from '@better-auth/oauth-provider';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { toNodeHandler } from 'better-auth/node';
import { jwt } from 'better-auth/plugins';

const port = Number(process.argv[2]);
const { env } = process;

// It registers only https addresses of public hosts for back-channel logout. This one stands for the edge.
const PUBLIC_EDGE = 'https://vestibule.example.com';
const backchannel = new URL(env.BACKCHANNEL_LOGOUT_URI);
const fetchAnywhere = globalThis.fetch;
globalThis.fetch = (url, init) => fetchAnywhere(String(url).replace(PUBLIC_EDGE, backchannel.origin), init);

const tables = { user: [], session: [], account: [], verification: [], jwks: [], oauthClient: [], oauthAccessToken: [], oauthRefreshToken: [], oauthConsent: [], oauthResource: [], oauthClientResource: [], oauthClientAssertion: [] };
const auth = betterAuth({
  baseURL: `http://127.0.0.1:${port}`,
  secret: 'for-the-length-of-a-test-and-no-longer',
  database: memoryAdapter(tables),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  disabledPaths: ['/token'],
  plugins: [
    jwt(),
    oauthProvider({ loginPage: '/sign-in', consentPage: '/consent', accessTokenExpiresIn: Number(env.SITE_ACCESS_TOKEN_SECS), silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true } }),
  ],
});

const { headers: signedUp } = await auth.api.signUpEmail({ returnHeaders: true, body: { name: env.ACCOUNT_NAME, email: env.ACCOUNT_EMAIL, password: env.ACCOUNT_PASSWORD } });
const client = await auth.api.adminCreateOAuthClient({
  headers: { cookie: signedUp.getSetCookie().map((line) => line.split(';')[0]).join('; ') },
  body: {
    client_name: 'Vestibule',
    redirect_uris: [env.REDIRECT_URI],
    post_logout_redirect_uris: [env.POST_LOGOUT_REDIRECT_URI],
    backchannel_logout_uri: `${PUBLIC_EDGE}${backchannel.pathname}`,
    application_type: 'native', // a web client would need https, which loopback does not have
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token'],
    scope: 'openid profile email offline_access',
    enable_end_session: true,
  },
});

process.on('SIGHUP', () => {
  for (const key of tables.jwks) key.expiresAt = new Date(Date.now() - 1000);
  process.stdout.write('key retired\n');
});

const handle = toNodeHandler(auth);
http.createServer((request, response) => {
  // The pages that an application supplies; the driver uses better-auth's own routes instead.
  if (request.url.startsWith('/sign-in') || request.url.startsWith('/consent')) return response.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title>');
  return handle(request, response);
}).listen(port, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ id: client.client_id, secret: client.client_secret })}\n`));
process.on('SIGTERM', () => process.exit(0));
