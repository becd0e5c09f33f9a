import { doorkeeper } from './drivers/doorkeeper.mjs';
import { suite } from './suite.mjs';

suite(doorkeeper);
