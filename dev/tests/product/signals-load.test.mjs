// Ten thousand security events a minute, heard and told, while a session service is killed and Redis loses its master: the short form of
// `make signals-load` and `make signals-told`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { told } from '../../signals-told.mjs';
import { complaints, signals } from '../../signals.mjs';

const [HEARD_S, TOLD_S] = [9, 6];

test('no security event is lost, and none acts twice, over the end of a session service and of a master of Redis', async () => {
  const result = await signals({ seconds: HEARD_S });
  assert.deepEqual(complaints(result), [], JSON.stringify(result));
});

test('a receiver hears of every ending, over the end of a session service and of a master of Redis', async () => {
  const result = await told({ seconds: TOLD_S });
  assert.equal(result.lost, 0, JSON.stringify(result));
});
