// A Django site as a provider: it signs with its newest key file, and a person fills in its pages.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../../lib/net.mjs';
import { environment } from './account.mjs';
import { startPython } from './python.mjs';

/**
 * Starts `NAME/site.py` of this folder. `metadata` is its metadata path; `answer(page, account)` fills in a page.
 */
export async function startDjango(name, options, { metadata = '/.well-known/openid-configuration', answer }) {
  const folder = mkdtempSync(join(tmpdir(), `vestibule-${name}-`));
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const env = { ...environment(options), SITE_FOLDER: folder };
  let [child, keys] = [undefined, 0];
  const run = async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(join(folder, `key-${(keys += 1)}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    child = await startPython(name, `${name}/site.py`, { args: [String(port)], env, ready: `${origin}${metadata}` });
  };
  await run();
  return {
    origin,
    answer: (page) => answer(page, options.account),
    async rotateKeys() {
      await child.stop();
      await run();
    },
    log: () => child.output,
    async stop() {
      await child.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
