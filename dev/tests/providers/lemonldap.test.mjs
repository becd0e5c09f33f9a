import { lemonldap } from './drivers/lemonldap.mjs';
import { suite } from './suite.mjs';

suite(lemonldap);
