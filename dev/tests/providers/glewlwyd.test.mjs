import { glewlwyd } from './drivers/glewlwyd.mjs';
import { suite } from './suite.mjs';

suite(glewlwyd);
