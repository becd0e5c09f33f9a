// Every attack at once, under the memory limit of the shipped pod: the short form of `make flood`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { complaints, flood } from '../../flood.mjs';
import { ATTACKS } from './attackers.mjs';

const SECONDS = 8;
// The flood of requests takes every core, which other tests need. `make flood` includes it, with release programs.
const ONLY = Object.keys(ATTACKS).filter((name) => name !== 'status');

test('under all attacks on memory at once the edge stays within its memory and serves others', async () => {
  const result = await flood({ seconds: SECONDS, only: ONLY });
  assert.deepEqual(complaints(result), [], JSON.stringify({ ...result, failed: result.failed.length }));
});
