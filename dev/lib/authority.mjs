// A temporary authority and its certificates, for pods on a developer's machine and for tests. Needs openssl.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const AUTHORITY_DAYS = 365;
const CERTIFICATE_DAYS = 90;
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'pipe'] });

/** Creates an authority in `folder` (ca.crt, ca.key), or keeps an existing one. */
export function makeAuthority(folder) {
  const authority = { certificate: join(folder, 'ca.crt'), key: join(folder, 'ca.key') };
  if (existsSync(authority.key)) return authority;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  openssl(
    'req', '-x509', ...KEY, '-days', String(AUTHORITY_DAYS), '-subj', '/CN=vestibule', '-addext', 'basicConstraints=critical,CA:TRUE',
    '-addext', 'keyUsage=critical,keyCertSign,cRLSign', '-keyout', authority.key, '-out', authority.certificate,
  );
  return authority;
}

const stamp = (date) => date.toISOString().replace(/\.\d+/, '').replaceAll(/[-:T]/g, '');

/** A certificate valid between two dates; only `openssl ca` allows a past date. */
function sign(authority, scratch, files, { from, until }) {
  const [settings, index] = ['settings', 'index'].map((name) => join(scratch, name));
  writeFileSync(index, '');
  writeFileSync(settings, `[ca]\ndefault_ca=own\n[own]\ndatabase=${index}\nnew_certs_dir=${scratch}\nrand_serial=yes\npolicy=any\n[any]\ncommonName=optional\n`);
  openssl(
    'ca', '-batch', '-notext', '-config', settings, '-md', 'sha256', '-cert', authority.certificate, '-keyfile', authority.key,
    '-in', files.request, '-extfile', files.extensions, '-startdate', stamp(from), '-enddate', stamp(until), '-out', files.certificate,
  );
}

/**
 * A certificate for `names` in `folder`, as cert-manager writes it: tls.crt, tls.key, ca.crt. `usages`: serverAuth,
 * clientAuth or both; `dates`: {from, until}, by default the next ninety days.
 */
export function issue(authority, folder, names, usages, dates) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const scratch = mkdtempSync(join(tmpdir(), 'vestibule-certificate-'));
  try {
    const [request, key, certificate, extensions] = ['request', 'tls.key', 'tls.crt', 'extensions'].map((name) => join(scratch, name));
    const alternative = names.map((name) => (/^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(',');
    writeFileSync(extensions, `basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=${usages.join(',')}\nsubjectAltName=${alternative}\n`);
    openssl('req', ...KEY, '-subj', '/', '-keyout', key, '-out', request);
    if (dates) sign(authority, scratch, { request, extensions, certificate }, dates);
    else openssl('x509', '-req', '-in', request, '-CA', authority.certificate, '-CAkey', authority.key, '-days', String(CERTIFICATE_DAYS), '-extfile', extensions, '-out', certificate);
    // key and certificate belong together: a reader between the two copies reads again
    copyFileSync(key, join(folder, 'tls.key'));
    copyFileSync(certificate, join(folder, 'tls.crt'));
    copyFileSync(authority.certificate, join(folder, 'ca.crt'));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
