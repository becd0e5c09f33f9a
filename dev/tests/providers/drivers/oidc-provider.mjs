// oidc-provider (npm), certified; also the development provider.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ACCOUNTS } from '../../../idp/lib/accounts.mjs';
import { freePort } from '../../../lib/net.mjs';
import { ROOT } from '../../../stack.mjs';
import { submit } from '../html.mjs';
import { startProgram } from './program.mjs';

const [ACCOUNT] = ACCOUNTS;

export const oidcProvider = {
  name: 'oidc-provider',
  version: '9.13.3',

  async start({ registration, client, accessTokenSecs }) {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-oidc-provider-'));
    const state = join(folder, 'state.json');
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    let child;
    const run = async () => {
      child = await startProgram('oidc-provider', process.execPath, [
        join(ROOT, 'dev/idp/server.mjs'), '--port', String(port), '--client-id', client.id, `--client-secret=${client.secret}`, '--state', state,
        '--redirect-uri', registration.redirectUri, '--post-logout-redirect-uri', registration.postLogoutRedirectUri,
        '--backchannel-logout-uri', registration.backchannelLogoutUri, '--access-token-ttl', String(accessTokenSecs),
      ], { ready: `${origin}/.well-known/openid-configuration` });
    };
    await run();
    return {
      origin,
      account: ACCOUNT,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { email: ACCOUNT.email, password: ACCOUNT.password });
        if (page.text.includes('op.logoutForm')) return submit(page, 'op.logoutForm', { logout: 'yes' });
        return undefined;
      },
      async rotateKeys() {
        await child.stop();
        rmSync(state);
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
