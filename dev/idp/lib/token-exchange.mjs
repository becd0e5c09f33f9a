// Token exchange (RFC 8693) as a grant of the development provider: an access token of a person for one for a resource. No delegation, no actor.
import { errors } from 'oidc-provider';

export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const PARAMETERS = ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'];

/** Registers the grant; `resourceServer` says what a token for a resource is, or throws that there is no such resource. */
export function registerTokenExchange(provider, resourceServer) {
  provider.registerGrantType(TOKEN_EXCHANGE, async (ctx) => {
    const { client, params } = ctx.oidc;
    if (params.subject_token_type !== ACCESS_TOKEN || params.requested_token_type !== ACCESS_TOKEN) {
      throw new errors.InvalidRequest('only access tokens are exchanged for access tokens');
    }
    const subject = await provider.AccessToken.find(params.subject_token ?? '');
    if (!subject || subject.clientId !== client.clientId) throw new errors.InvalidRequest('subject_token is not valid');
    if (!params.resource) throw new errors.InvalidTarget();
    const server = new provider.ResourceServer(params.resource, resourceServer(params.resource));
    const known = new Set(server.scope.split(' '));
    const scope = (params.scope ?? '').split(' ').filter((name) => known.has(name)).join(' ');
    const { accountId, claims, grantId, sessionUid, expiresWithSession } = subject;
    const token = new provider.AccessToken({ accountId, claims, client, grantId, gty: 'token_exchange', scope, sessionUid, expiresWithSession });
    token.resourceServer = server;
    ctx.body = {
      access_token: await token.save(), issued_token_type: ACCESS_TOKEN, token_type: token.tokenType, expires_in: token.expiration, scope,
    };
  }, PARAMETERS);
}
