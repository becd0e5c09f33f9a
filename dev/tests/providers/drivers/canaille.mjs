// Canaille (PyPI) on SQLite.
import { freePort } from '../../../lib/net.mjs';
import { submit } from '../html.mjs';
import { environment } from './account.mjs';
import { changedKeys } from './program.mjs';
import { startPython } from './python.mjs';

export const canaille = {
  name: 'Canaille',
  version: '0.3.6',
  exceptions: {
    refresh: { fault: 'its fault', symptom: /ERR_FAILED_REFRESH_GRANT/, says: 'its refresh tokens end with the access token they came with; one that is refreshed before works' },
    backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ },
  },

  /** With `clientKeys`, the address of its public keys, the client authenticates with private_key_jwt. */
  async start({ clientKeys, ...options }) {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const child = await startPython('canaille', 'canaille/server.py', {
      args: [String(port)], env: { ...environment(options), ...(clientKeys && { CLIENT_AUTH: 'private_key_jwt', CLIENT_JWKS_URI: clientKeys }) }, ready: `${origin}/.well-known/openid-configuration`,
    });
    return {
      origin,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { password: options.account.password });
        if (page.text.includes('name="login"')) return submit(page, 'name="login"', { login: options.account.username });
        if (page.text.includes('value="accept"')) return submit(page, 'value="accept"', { answer: 'accept' });
        if (page.text.includes('value="logout"')) return submit(page, 'value="logout"', { answer: 'logout' });
        return undefined;
      },
      rotateKeys: () => changedKeys(`${origin}/oauth/jwks.json`, () => child.signal('SIGHUP')),
      log: () => child.output,
      stop: () => child.stop(),
    };
  },
};
