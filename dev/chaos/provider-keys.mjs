// From now on the provider signs with another key, and forgets the earlier one.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const newKey = () => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), kid: randomBytes(8).toString('hex'), alg: 'RS256', use: 'sig',
});

/** Puts a new key into the state of a provider that is down. */
export function rotateKeys(folder) {
  const file = join(folder, 'idp.json');
  const state = JSON.parse(readFileSync(file, 'utf8'));
  state.jwks.keys = [newKey(), ...state.jwks.keys.filter(({ kty }) => kty !== 'RSA')];
  writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
}
