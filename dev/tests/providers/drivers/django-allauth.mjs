// django-allauth (PyPI), as an identity provider in a Django site of its own.
import { submit } from '../html.mjs';
import { startDjango } from './django.mjs';

export const djangoAllauth = {
  name: 'django-allauth',
  version: '65.22.1',
  exceptions: { backChannel: { offered: 'it has none', symptom: /backchannel_logout_supported/ } },

  start: (options) => startDjango('django-allauth', options, {
    answer(page, { username, password }) {
      if (page.text.includes('name="password"')) return submit(page, 'name="password"', { login: username, password });
      if (page.text.includes('value="grant"')) return submit(page, 'value="grant"', { action: 'grant' });
      if (page.text.includes('value="logout"')) return submit(page, 'value="logout"', { action: 'logout' });
      return undefined;
    },
  }),
};
