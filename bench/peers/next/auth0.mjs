// nextjs-auth0 as its documentation sets it up; with a provider that is not Auth0's and on loopback, which it has to be told. The
// benchmark gives it one setting, PEER, in JSON; a build has none.
import { Auth0Client } from '@auth0/nextjs-auth0/server';

export const { origin = 'http://127.0.0.1', idp = { issuer: 'http://localhost', clientId: 'build', clientSecret: 'build' }, secret = 'build'.repeat(16), callback = '/callback', profile = '/profile', bytes = 0 } = JSON.parse(process.env.PEER ?? '{}');

export const auth0 = new Auth0Client({
  domain: idp.issuer,
  clientId: idp.clientId,
  clientSecret: idp.clientSecret,
  appBaseUrl: origin,
  secret,
  authorizationParameters: { scope: 'openid profile email' },
  routes: { callback },
  signInReturnToPath: profile,
  allowInsecureRequests: true,
});
