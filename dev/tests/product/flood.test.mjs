// Every attack at once, under the memory limit of the shipped pod: the short form of `make flood`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { complaints, flood } from '../../flood.mjs';

const SECONDS = 8;

test('under all attacks at once the edge stays within its memory and serves others', async () => {
  const result = await flood({ seconds: SECONDS });
  assert.deepEqual(complaints(result), [], JSON.stringify({ ...result, failed: result.failed.length }));
});
