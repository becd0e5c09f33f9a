// The configuration of oidc-provider: it behaves like a good commercial provider, for one confidential client.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { errors, interactionPolicy, Provider } from 'oidc-provider';

import { findAccount } from './accounts.mjs';
import { errorPage, signedOutPage, signOutPage } from './pages.mjs';

const DAY = 24 * 60 * 60;
const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]']);

/**
 * By default the provider refuses to call addresses of the local network, where all its clients are. Calls to
 * loopback and to hosts of its command line skip that guard; all others keep it.
 */
function fetchAllowing({ backchannelLogoutUri, clientJwksUri }) {
  const named = [backchannelLogoutUri, clientJwksUri].filter(Boolean).map((url) => new URL(url).hostname);
  const allowed = new Set([...LOOPBACK, ...named]);
  return (url, options) => {
    if (!allowed.has(new URL(url).hostname)) return fetch(url, options);
    const { dispatcher: _, ...rest } = options;
    return fetch(url, rest);
  };
}

function addKeys(client, { clientJwksFile, clientJwksUri }) {
  if (clientJwksUri) {
    client.jwks_uri = clientJwksUri;
  } else if (clientJwksFile) {
    client.jwks = JSON.parse(readFileSync(clientJwksFile, 'utf8'));
    client.token_endpoint_auth_signing_alg = client.jwks.keys[0].alg;
  } else {
    throw new Error('--client-auth private_key_jwt needs --client-jwks or --client-jwks-uri');
  }
}

function clientOf(options) {
  const client = {
    client_id: options.clientId,
    client_name: 'Vestibule',
    application_type: 'web',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    redirect_uris: options.redirectUris,
    post_logout_redirect_uris: options.postLogoutRedirectUris,
    token_endpoint_auth_method: options.clientAuth,
    id_token_signed_response_alg: 'RS256',
  };
  if (options.clientAuth === 'private_key_jwt') {
    addKeys(client, options);
  } else {
    client.client_secret = options.clientSecret;
  }
  if (options.backchannelLogoutUri) {
    client.backchannel_logout_uri = options.backchannelLogoutUri;
    client.backchannel_logout_session_required = true;
  }
  return client;
}

/** A client without a user: it gets tokens for itself. */
function machineOf({ machineClient, clientSecret }) {
  return {
    client_id: machineClient, client_secret: clientSecret, grant_types: ['client_credentials'], response_types: [], redirect_uris: [],
  };
}

/** The library's policy, and `prompt=select_account` (OpenID Connect Core 3.1.2.1), to switch accounts. */
function policyWithAccountChoice() {
  const policy = interactionPolicy.base();
  policy.add(new interactionPolicy.Prompt({ name: 'select_account', requestable: true }), 0);
  return policy;
}

/** A first-party client gets its scopes without a consent page. */
async function grantWhatIsAsked(ctx) {
  const { provider, client, session, result, requestParamScopes } = ctx.oidc;
  const known = result?.consent?.grantId ?? session.grantIdFor(client.clientId);
  const grant = (known && (await provider.Grant.find(known))) || new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope([...requestParamScopes].join(' '));
  for (const [resource, { scope }] of Object.entries(ctx.oidc.resourceServers)) grant.addResourceScope(resource, scope);
  await grant.save();
  return grant;
}

/** Signs access tokens for a known resource, for that resource alone. */
function resourceServer({ resources, accessTokenTtl }, resource) {
  if (!resources.includes(resource)) throw new errors.InvalidTarget();
  return { scope: 'openid profile email orders:read orders:write', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: accessTokenTtl };
}

/** Whether the file of disabled accounts lists this one. */
const isDisabled = (file, sub) => file !== undefined && readFileSync(file, 'utf8').split('\n').includes(sub);

/** Makes the provider. `options` come from the command line, with `issuer`, `clientSecret` and `state`. */
export function createProvider(options) {
  const { issuer, state } = options;
  const provider = new Provider(issuer, {
    adapter: state.adapter,
    clients: [clientOf(options), ...(options.machineClient ? [machineOf(options)] : [])],
    jwks: state.jwks,
    scopes: ['openid', 'offline_access', 'orders:read', 'orders:write'],
    cookies: {
      keys: state.cookieKeys,
      names: { session: 'idp_session', interaction: 'idp_interaction', resume: 'idp_resume' },
    },
    findAccount: (_ctx, sub) => (isDisabled(options.disabledFile, sub) ? undefined : findAccount(issuer, sub)),
    loadExistingGrant: grantWhatIsAsked,
    // the ID token has name and e-mail too, as with most commercial providers
    conformIdTokenClaims: false,
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'given_name', 'family_name', 'preferred_username', 'picture', 'locale', 'updated_at', 'groups'],
      acr: null,
      auth_time: null,
      iss: null,
      sid: null,
    },
    acrValues: ['urn:vestibule:dev:password'],
    extraParams: ['audience', 'organization', 'invitation', 'screen_hint'],
    interactions: { policy: policyWithAccountChoice(), url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    responseTypes: ['code'],
    pkce: { required: () => true },
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: () => true,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      claimsParameter: { enabled: true },
      clientCredentials: { enabled: options.machineClient !== undefined },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => options.requireDpopNonce === true },
      introspection: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      requestObjects: { enabled: true },
      resourceIndicators: {
        enabled: options.resources.length > 0,
        getResourceServerInfo: (_ctx, resource) => resourceServer(options, resource),
        useGrantedResource: () => true,
      },
      registration: { enabled: options.registration === true },
      revocation: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: async (ctx, form) => {
          ctx.body = signOutPage(form, { certain: Boolean(ctx.oidc.entities.IdTokenHint) });
          protect(ctx, options.postLogoutRedirectUris);
        },
        postLogoutSuccessSource: async (ctx) => {
          ctx.body = signedOutPage();
          protect(ctx, []);
        },
      },
    },
    ttl: {
      AccessToken: options.accessTokenTtl,
      IdToken: options.idTokenTtl,
      RefreshToken: options.refreshTokenTtl,
      Interaction: 60 * 60,
      Session: 14 * DAY,
      Grant: 14 * DAY,
    },
    renderError: async (ctx, out) => {
      ctx.type = 'html';
      ctx.body = errorPage(out.error, out.error_description, applicationOf(options.redirectUris));
      protect(ctx, []);
    },
    fetch: fetchAllowing(options),
  });
  provider.on('server_error', (_ctx, error) => process.stderr.write(`provider error: ${error.stack}\n`));
  provider.on('grant.error', (_ctx, error) => process.stderr.write(`token request refused: ${error.message}: ${error.error_description ?? ''}\n`));
  provider.on('backchannel.error', (_ctx, error) => process.stderr.write(`back-channel logout failed: ${error.message}\n`));
  return provider;
}

function protect(ctx, formTargets) {
  ctx.set(pageHeaders(formTargets));
}

/** The origins of the client's pages. */
export const applicationOf = ([redirectUri]) => redirectUri && new URL('/', redirectUri).href;

/** Headers of every page; forms may lead to the client, because a redirect after a form counts as its target. */
export function pageHeaders(formTargets) {
  const origins = [...new Set(formTargets.map((target) => new URL(target).origin))].join(' ');
  return {
    'Cache-Control': 'no-store',
    'Content-Security-Policy': `default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self' ${origins}; frame-ancestors 'none'; base-uri 'none'`,
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  };
}
