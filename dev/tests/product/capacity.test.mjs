// Whether the arithmetic of `make capacity` keeps what docs/scaling.md says of large installations.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ASSUMED, CONSTANTS, values } from '../../../bench/capacity/constants.mjs';
import { capacity } from '../../../bench/capacity/model.mjs';

test('a hundred million sessions take no more than 1,300 bytes each, and a list no more than a small set', () => {
  const sized = (sessions) => capacity({ sessions, requests: sessions / 200, constants: values(CONSTANTS), assumed: values(ASSUMED) });
  for (const sessions of [1_000_000, 100_000_000]) {
    const found = sized(sessions);
    assert.ok(found.perSession <= 1_300, `${sessions} sessions: ${found.perSession} bytes each`);
    assert.ok((2 * sessions) / found.sets < 128, `${sessions} sessions: ${found.sets} sets`);
  }
  // What grows with sessions grows with them and no faster.
  assert.ok(sized(100_000_000).bytes.all < 101 * sized(1_000_000).bytes.all);
});
