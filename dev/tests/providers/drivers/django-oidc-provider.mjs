// django-oidc-provider (PyPI) in a Django site of its own.
import { submit } from '../html.mjs';
import { startDjango } from './django.mjs';

export const djangoOidcProvider = {
  name: 'django-oidc-provider',
  version: '0.9.0',
  exceptions: { backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ } },

  start: (options) => startDjango('django-oidc-provider', options, {
    metadata: '/openid/.well-known/openid-configuration',
    answer(page, { username, password }) {
      if (page.text.includes('name="password"')) return submit(page, 'name="password"', { username, password });
      if (page.text.includes('name="allow"')) return submit(page, 'name="allow"', { allow: 'Accept' });
      return undefined;
    },
  }),
};
