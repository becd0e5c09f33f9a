import { canaille } from './drivers/canaille.mjs';
import { suite } from './suite.mjs';

suite(canaille);
