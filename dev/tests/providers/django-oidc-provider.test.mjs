import { djangoOidcProvider } from './drivers/django-oidc-provider.mjs';
import { suite } from './suite.mjs';

suite(djangoOidcProvider);
