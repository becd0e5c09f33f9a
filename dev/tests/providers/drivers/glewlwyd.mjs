// Glewlwyd (Debian). Its pages are a script in the browser; this driver sends the same requests.
import { ADA, CLIENT, signInAt, startGlewlwyd } from './glewlwyd/program.mjs';

export const glewlwyd = {
  name: 'Glewlwyd',
  version: '2.7.5',
  exceptions: {
    backChannel: { offered: 'its metadata does not name it. If it is switched on, it sends logout tokens of a draft, which the edge rejects', symptom: /backchannel_logout_supported/ },
  },

  async start({ edgeUrl, registration, accessTokenSecs }) {
    const provider = await startGlewlwyd({ edgeUrl, accessTokenSecs, postLogoutRedirectUri: registration.postLogoutRedirectUri });
    return {
      origin: provider.origin,
      client: CLIENT,
      account: ADA,
      asksWho: async (page, person) => page.url.includes('/login.html') && (await person.fetch(`${provider.origin}/api/profile_list`)).status === 401,
      async answer(page, person) {
        const { pathname, searchParams } = new URL(page.url);
        const [back, sid] = [searchParams.get('callback_url'), searchParams.get('sid')];
        if (!pathname.endsWith('/login.html') || !back) return undefined;
        if (searchParams.get('prompt') === 'end_session') {
          await person.fetch(`${provider.issuer}session/${sid}/`, { method: 'DELETE' });
          await person.fetch(`${provider.origin}/api/auth/?username=${ADA.username}`, { method: 'DELETE' });
          return { url: back };
        }
        await signInAt(person, provider);
        return { url: `${back.replace(/#$/, '')}&g_continue` };
      },
      rotateKeys: provider.rotateKeys,
      log: provider.log,
      stop: provider.stop,
    };
  },
};
