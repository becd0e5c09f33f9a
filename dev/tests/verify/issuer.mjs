// A scripted issuer of assertions with the keys of one edge, and the faults of examples/verify/attacks.json.
import { createHmac, createSign, generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { freePort } from '../../lib/net.mjs';

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A key pair with its JWK. */
function makeKey(type = 'ec') {
  const pair = generateKeyPairSync(type, type === 'ec' ? { namedCurve: 'P-256' } : { modulusLength: 2048 });
  const kid = randomUUID();
  const alg = type === 'ec' ? 'ES256' : 'RS256';
  return { ...pair, kid, jwk: { ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } };
}

const withChanges = (object, changes = {}) => Object.fromEntries(Object.entries({ ...object, ...changes }).filter(([, value]) => value !== null));

export class Issuer {
  #signing = makeKey();
  #rsa = makeKey('rsa');
  #other = makeKey();
  #old = [];
  #server;
  /** How many requests asked for the keys, and for those that an attacker offers. */
  asked = { keys: 0, other: 0 };

  async start() {
    const port = await freePort();
    const sets = { '/keys.json': ['keys', () => [this.#signing, this.#rsa, ...this.#old]], '/other.json': ['other', () => [this.#other]] };
    this.#server = createServer((request, response) => {
      const [name, keys] = sets[request.url] ?? [];
      if (!name) return response.writeHead(404).end();
      this.asked[name] += 1;
      return response.setHeader('content-type', 'application/jwk-set+json').end(JSON.stringify({ keys: keys().map(({ jwk }) => jwk) }));
    });
    await new Promise((resolve) => { this.#server.listen(port, '127.0.0.1', resolve); });
    this.url = `http://127.0.0.1:${port}`;
  }

  stop() {
    this.#server.closeAllConnections();
    return new Promise((resolve) => { this.#server.close(resolve); });
  }

  /** Publishes a new key next to the earlier ones, and signs with it. */
  rotate() {
    this.#old.push(this.#signing);
    this.#signing = makeKey();
  }

  /** An assertion for `audience` about `user`, with the faults of an attack. */
  sign(audience, user, { header: headerFaults = {}, claims: claimFaults = {}, key: keyName = 'signing', text } = {}) {
    if (text !== undefined) return text;
    const key = { other: this.#other, rsa: this.#rsa }[keyName] ?? this.#signing;
    const replaced = { kid: { published: this.#signing.kid }, jwk: { other: this.#other.jwk }, jku: { other: `${this.url}/other.json` } };
    const faults = Object.fromEntries(Object.entries(headerFaults).map(([name, value]) => [name, replaced[name]?.[value] ?? value]));
    const header = withChanges({ typ: 'JWT', alg: 'ES256', kid: key.kid }, faults);
    const now = Math.floor(Date.now() / 1000);
    const times = Object.fromEntries(Object.entries(claimFaults).map(([name, value]) => [name, typeof value === 'number' ? now + value : value]));
    const claims = withChanges({ iss: this.url, aud: audience, sub: `id-of-${user}`, email: `${user}@example.test`, idp: 'https://idp.example', iat: now, exp: now + 60, jti: randomUUID() }, times);
    const input = `${encode(header)}.${encode(claims)}`;
    if (keyName === 'none') return `${input}.`;
    if (keyName === 'public key') return `${input}.${createHmac('sha256', key.publicKey.export({ format: 'pem', type: 'spki' })).update(input).digest('base64url')}`;
    const signature = createSign('sha256').update(input).sign({ key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
    if (keyName === 'replaced payload') return `${encode(header)}.${encode({ ...claims, sub: 'id-of-root', email: 'root@example.test' })}.${signature}`;
    return `${input}.${signature}`;
  }

  /** The headers of an attack's request, as node's http takes them. */
  attack(audience, attack) {
    const texts = { valid: this.sign(audience, 'ada'), forged: this.sign(audience, 'ada', attack) };
    const send = attack.send ?? [['X-Auth-Assertion', 'forged']];
    return send.flatMap(([name, what]) => [name, what.replace(/valid|forged/, (word) => texts[word])]);
  }
}
