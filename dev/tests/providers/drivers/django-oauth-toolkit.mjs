// django-oauth-toolkit (PyPI) in a Django site of its own.
import { submit } from '../html.mjs';
import { startDjango } from './django.mjs';

export const djangoOauthToolkit = {
  name: 'django-oauth-toolkit',
  version: '3.4.1',
  exceptions: { backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ } },

  start: (options) => startDjango('django-oauth-toolkit', options, {
    metadata: '/o/.well-known/openid-configuration',
    answer(page, { username, password }) {
      if (page.text.includes('name="password"')) return submit(page, 'name="password"', { username, password });
      if (page.text.includes('name="allow"')) return submit(page, 'name="allow"', { allow: 'Authorize' });
      return undefined;
    },
  }),
};
