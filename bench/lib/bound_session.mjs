// A session as a browser has it that binds it to a key of its device (W3C Device Bound Session Credentials), at an edge behind a proxy that does TLS.
import { createSign, generateKeyPairSync } from 'node:crypto';

import { Problem } from '../../dev/lib/build.mjs';
import { freePort } from '../../dev/lib/net.mjs';
import { Client } from '../../dev/tests/product/client.mjs';
import { releaseStack } from './services.mjs';

/** Speaks to the edge as the proxy does: what is https to the browser comes over http. */
class ProxiedClient extends Client {
  fetch(url, init) {
    return super.fetch(url.replace(/^https:/, 'http:'), init);
  }
}

/** A stack whose base URL is https, and which is spoken to without TLS. */
export async function proxiedStack(options) {
  const port = await freePort();
  return releaseStack({ ...options, publicUrl: `https://127.0.0.1:${port}`, ports: { edge: port } });
}

/** Signs one person in, and binds the session if so wanted: the header that is their session, and where the edge hears. */
export async function signedInBehindTls(stack, { bound }) {
  const person = new ProxiedClient();
  const callback = await person.signIn(stack);
  if (bound) await bind(person, stack, callback.headers.get('secure-session-registration'));
  const edge = stack.edgeUrl.replace('https:', 'http:');
  const cookie = [...person.cookies(edge)].filter(([name]) => name.startsWith('__Host-session')).map(([name, value]) => `${name}=${value}`).join('; ');
  return { cookie, edge };
}

async function bind(person, stack, offer) {
  const [, path, challenge] = /path="([^"]+)";challenge="([^"]+)"/.exec(offer ?? '') ?? [];
  if (!challenge) throw new Problem(`the edge offers no binding: ${offer}`);
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ typ: 'dbsc+jwt', alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) })}.${part({ jti: challenge })}`;
  const signature = createSign('sha256').update(signed).sign({ key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
  const headers = { 'secure-session-response': `${signed}.${signature}`, 'sec-fetch-site': 'same-origin', origin: stack.edgeUrl };
  const answer = await person.fetch(`${stack.edgeUrl}${path}`, { method: 'POST', headers });
  if (answer.status !== 200) throw new Problem(`the session is not bound: ${answer.status} ${answer.text}`);
}
