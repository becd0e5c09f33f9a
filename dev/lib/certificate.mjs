// A certificate for a test server under this machine's own names. Clients trust it if they receive the file.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Creates a self-signed certificate for localhost and 127.0.0.1 in `folder`: {certificate, key}. Needs openssl. */
export function makeCertificate(folder) {
  const [certificate, key] = [join(folder, 'tls.pem'), join(folder, 'tls.key')];
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', certificate,
  ], { stdio: 'pipe' });
  return { certificate, key };
}
