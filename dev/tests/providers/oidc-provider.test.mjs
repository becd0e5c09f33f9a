import { oidcProvider } from './drivers/oidc-provider.mjs';
import { suite } from './suite.mjs';

suite(oidcProvider);
