// django-oauth-toolkit (PyPI) in a Django site of its own.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../../lib/net.mjs';
import { submit } from '../html.mjs';
import { environment } from './account.mjs';
import { startPython } from './python.mjs';

export const djangoOauthToolkit = {
  name: 'django-oauth-toolkit',
  version: '3.4.1',
  exceptions: { backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ } },

  async start(options) {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-dot-'));
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    let [child, keys] = [undefined, 0];
    const run = async () => {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      writeFileSync(join(folder, `key-${(keys += 1)}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
      child = await startPython('django-oauth-toolkit', 'django-oauth-toolkit/site.py', {
        args: [String(port)], env: { ...environment(options), SITE_FOLDER: folder }, ready: `${origin}/o/.well-known/openid-configuration`,
      });
    };
    await run();
    return {
      origin,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { username: options.account.username, password: options.account.password });
        if (page.text.includes('name="allow"')) return submit(page, 'name="allow"', { allow: 'Authorize' });
        return undefined;
      },
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
  },
};
