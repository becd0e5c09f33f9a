// Two session services that speak TLS, for `startStack`: their certificate, where they listen, and what edges have to know.
import { join } from 'node:path';

import { issue, makeAuthority } from './authority.mjs';
import { freePort } from './net.mjs';

/** Certificates go into `folder`: the authority's and, in `session-tls`, that of both services. */
export async function sessionTls(folder) {
  const authority = makeAuthority(join(folder, 'authority'));
  const place = join(folder, 'session-tls');
  issue(authority, place, ['127.0.0.1'], ['serverAuth']);
  const ports = { session: await freePort(), 'session-2': await freePort() };
  return {
    authority,
    ports,
    edgeEnv: { EDGE_SESSION_SVC_URL: Object.values(ports).map((port) => `https://127.0.0.1:${port}`).join(), EDGE_SESSION_SVC_CA_FILE: authority.certificate },
    sessionEnv: { SESSION_TLS_CERT_FILE: join(place, 'tls.crt'), SESSION_TLS_KEY_FILE: join(place, 'tls.key') },
  };
}
