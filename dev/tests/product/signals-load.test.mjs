// Ten thousand security events a minute while a session service is killed and Redis loses its master: the short form of `make signals-load`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { complaints, signals } from '../../signals.mjs';

const SECONDS = 9;

test('no security event is lost, and none acts twice, over the end of a session service and of a master of Redis', async () => {
  const result = await signals({ seconds: SECONDS });
  assert.deepEqual(complaints(result), [], JSON.stringify(result));
});
