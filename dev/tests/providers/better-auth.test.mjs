import { betterAuth } from './drivers/better-auth.mjs';
import { suite } from './suite.mjs';

suite(betterAuth);
