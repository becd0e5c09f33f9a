// Reads the user of a request from its X-Auth-Assertion. Call it wherever a request reaches data.
import { createRemoteJWKSet, jwtVerify } from 'jose';

let keys;

/** The user, or `undefined` without a valid assertion. `headers` are those of the request, or of `next/headers`. */
export async function readUser(headers) {
  const { VESTIBULE_ISSUER: issuer, AUDIENCE: audience, KEYS_URL: url } = process.env; // unset during `next build`
  if (!issuer || !audience) throw new Error('set VESTIBULE_ISSUER and AUDIENCE'); // jose would skip these checks
  keys ??= createRemoteJWKSet(new URL(url ?? `${issuer}/.well-known/vestibule/jwks.json`), {
    cacheMaxAge: 300_000,
    cooldownDuration: 10_000,
  });
  const requiredClaims = ['exp', 'sub', 'email'];
  const rules = { algorithms: ['ES256'], typ: 'JWT', issuer, audience, requiredClaims, clockTolerance: 5 };
  try {
    const { payload } = await jwtVerify(headers.get('x-auth-assertion') ?? '', keys, rules);
    return { subject: payload.sub, email: payload.email };
  } catch {
    return undefined;
  }
}
