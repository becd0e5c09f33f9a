import { djangoOauthToolkit } from './drivers/django-oauth-toolkit.mjs';
import { suite } from './suite.mjs';

suite(djangoOauthToolkit);
