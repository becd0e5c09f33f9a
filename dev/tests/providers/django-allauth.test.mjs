import { djangoAllauth } from './drivers/django-allauth.mjs';
import { suite } from './suite.mjs';

suite(djangoAllauth);
