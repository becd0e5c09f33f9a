// oidc-provider (npm), certified; also the development provider.
import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { ACCOUNTS } from '../../../idp/lib/accounts.mjs';
import { ROOT } from '../../../stack.mjs';
import { submit } from '../html.mjs';
import { startProgram, startSite } from './program.mjs';

const [ACCOUNT] = ACCOUNTS;

export const oidcProvider = {
  name: 'oidc-provider',
  version: '9.13.3',

  async start({ registration, client, accessTokenSecs }) {
    const site = await startSite('oidc-provider', ({ folder, port, origin }) => {
      const state = join(folder, 'state.json');
      rmSync(state, { force: true }); // it holds the keys
      return startProgram('oidc-provider', process.execPath, [
        join(ROOT, 'dev/idp/server.mjs'), '--port', String(port), '--client-id', client.id, `--client-secret=${client.secret}`, '--state', state,
        '--redirect-uri', registration.redirectUri, '--post-logout-redirect-uri', registration.postLogoutRedirectUri,
        '--backchannel-logout-uri', registration.backchannelLogoutUri, '--access-token-ttl', String(accessTokenSecs),
      ], { ready: `${origin}/.well-known/openid-configuration` });
    });
    return {
      ...site,
      account: ACCOUNT,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { email: ACCOUNT.email, password: ACCOUNT.password });
        if (page.text.includes('op.logoutForm')) return submit(page, 'op.logoutForm', { logout: 'yes' });
        return undefined;
      },
    };
  },
};
