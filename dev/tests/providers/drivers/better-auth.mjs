// better-auth with @better-auth/oauth-provider (npm), which leaves its pages to the application.
import { fileURLToPath } from 'node:url';

import { freePort, until } from '../../../lib/net.mjs';
import { environment } from './account.mjs';
import { startProgram } from './program.mjs';

const SERVER = fileURLToPath(new URL('./better-auth/server.mjs', import.meta.url));
const RETIRED_MS = 5_000; // from the signal to its response

export const betterAuth = {
  name: 'better-auth',
  version: '1.7.5',

  async start(options) {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const child = await startProgram('better-auth', process.execPath, [SERVER, String(port)], {
      env: { ...process.env, ...environment(options) }, ready: `${origin}/api/auth/.well-known/openid-configuration`,
    });
    const send = (path, body) => ({ url: `${origin}/api/auth${path}`, method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json', origin }, body: JSON.stringify(body) });
    return {
      origin,
      client: JSON.parse(await child.firstLine),
      asksWho: (page) => new URL(page.url).pathname === '/sign-in',
      answer(page) {
        const { pathname, search } = new URL(page.url);
        const oauth_query = search.slice(1);
        if (pathname === '/sign-in') return send('/sign-in/email', { email: options.account.email, password: options.account.password, oauth_query });
        if (pathname === '/consent') return send('/oauth2/consent', { accept: true, oauth_query });
        if (page.status === 200 && page.headers.get('content-type')?.startsWith('application/json')) return { url: new URL(page.json().url, page.url).href };
        return undefined;
      },
      async rotateKeys() {
        child.signal('SIGHUP');
        await until(RETIRED_MS, () => child.output.includes('key retired'), () => 'the key is not retired');
      },
      log: () => child.output,
      stop: () => child.stop(),
    };
  },
};
