// Doorkeeper with doorkeeper-openid_connect (Debian) in a separate Rails application. GitLab uses the same library.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { freePort } from '../../../lib/net.mjs';
import { submit } from '../html.mjs';
import { environment } from './account.mjs';
import { startProgram } from './program.mjs';

const SITE = fileURLToPath(new URL('./doorkeeper/config.ru', import.meta.url));

export const doorkeeper = {
  name: 'Doorkeeper',
  version: '5.5.0, doorkeeper-openid_connect 1.8.0',
  exceptions: {
    signOut: { offered: 'it has none: people are signed out here alone, and their next sign-in asks who they are' },
    backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ },
  },

  async start(options) {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-doorkeeper-'));
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    let child;
    const run = async () => {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
      child = await startProgram('doorkeeper', 'puma', ['--bind', `tcp://127.0.0.1:${port}`, '--environment', 'production', SITE], {
        env: { ...process.env, ...environment(options), SITE_FOLDER: folder, SITE_ORIGIN: origin }, cwd: folder, ready: `${origin}/.well-known/openid-configuration`,
      });
    };
    await run();
    return {
      origin,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { username: options.account.username, password: options.account.password });
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
