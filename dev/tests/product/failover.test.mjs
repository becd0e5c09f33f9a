// An operator replaces a Redis master under load on two session services and three edges: one `make failover` round.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { complaints, failovers } from '../../failover.mjs';

for (const [topology, what] of [['sentinel', 'behind Sentinels'], ['cluster', 'of a cluster']]) {
  test(`a planned failover ${what} loses nothing, undoes nothing and signs no user out`, async () => {
    const results = await failovers({ topology, kind: 'planned', load: 1 / 4 }); // next to other tests
    assert.deepEqual(complaints(results), [], JSON.stringify(results));
  });
}
