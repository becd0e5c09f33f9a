// Doorkeeper with doorkeeper-openid_connect (Debian) in a separate Rails application. GitLab uses the same library.
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { submit } from '../html.mjs';
import { environment } from './account.mjs';
import { startProgram, startSite } from './program.mjs';

const SITE = fileURLToPath(new URL('./doorkeeper/config.ru', import.meta.url));

export const doorkeeper = {
  name: 'Doorkeeper',
  version: '5.5.0, doorkeeper-openid_connect 1.8.0',
  exceptions: {
    signOut: { offered: 'it has none: the edge ends its own session only, and the next sign-in asks for the account' },
    backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ },
  },

  async start(options) {
    const site = await startSite('doorkeeper', ({ folder, port, origin }) => {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
      return startProgram('doorkeeper', 'puma', ['--bind', `tcp://127.0.0.1:${port}`, '--environment', 'production', SITE], {
        env: { ...process.env, ...environment(options), SITE_FOLDER: folder, SITE_ORIGIN: origin }, cwd: folder, ready: `${origin}/.well-known/openid-configuration`,
      });
    });
    return {
      ...site,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { username: options.account.username, password: options.account.password });
        return undefined;
      },
    };
  },
};
