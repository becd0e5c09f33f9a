// Redis and Valkey as they are installed, stopped and killed under sessions, with the users of the manifests: a short `make restarts`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { installed, restarts } from '../../restarts.mjs';

for (const engine of ['redis', 'valkey']) {
  test(`a restart of ${engine} loses no session, undoes no ending, and check-store knows who would`, async () => {
    const results = [];
    const wrong = await restarts([installed(engine)], ['stopped', 'rewritten'], (result) => results.push(result));
    assert.deepEqual(wrong, []);
    for (const { before, after } of results) assert.ok(before > 0 && after === before);
  });
}
