// A log of grants, refusals and logout tokens: one line of JSON for each, for tests of the clients. Codes and tokens
// appear as hashes.
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';

/** A name for a secret: twelve digits of its hash. */
export const nameOf = (secret) => createHash('sha256').update(secret).digest('hex').slice(0, 12);

const named = (secret) => (secret === undefined ? undefined : nameOf(secret));

/** Appends to `file` while the process lives. It writes each line before the provider sends its answer. */
export function recordGrants(provider, file) {
  const record = (kind, facts) => appendFileSync(file, `${JSON.stringify({ kind, at: Date.now(), ...facts })}\n`);
  const presented = ({ grant_type: grantType, code, refresh_token: token }) => ({ grantType, code: named(code), presented: named(token) });
  provider.on('grant.success', ({ oidc, body }) => {
    const { grantId, accountId, sid } = oidc.entities.AuthorizationCode ?? oidc.entities.RefreshToken ?? {};
    record('granted', { ...presented(oidc.params), grant: grantId && nameOf(grantId), account: accountId, sid, access: named(body.access_token), refresh: named(body.refresh_token) });
  });
  provider.on('grant.error', ({ oidc }, { error }) => record('refused', { ...presented(oidc.params ?? {}), error }));
  provider.on('backchannel.success', (_ctx, _client, account, sid) => record('told', { account, sid }));
  provider.on('backchannel.error', (_ctx, _error, _client, account, sid) => record('untold', { account, sid }));
}
