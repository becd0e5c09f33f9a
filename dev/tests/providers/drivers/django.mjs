// A Django site as a provider: it signs with its newest key file, and a person fills in its pages.
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { environment } from './account.mjs';
import { startSite } from './program.mjs';
import { startPython } from './python.mjs';

/**
 * Starts `NAME/site.py` of this folder. `metadata` is its metadata path; `answer(page, account)` fills in a page.
 */
export async function startDjango(name, options, { metadata = '/.well-known/openid-configuration', answer }) {
  let keys = 0;
  const site = await startSite(name, ({ folder, port, origin }) => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(join(folder, `key-${(keys += 1)}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    return startPython(name, `${name}/site.py`, {
      args: [String(port)], env: { ...environment(options), SITE_FOLDER: folder }, ready: `${origin}${metadata}`,
    });
  });
  return { ...site, answer: (page) => answer(page, options.account) };
}
