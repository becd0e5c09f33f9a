// Half a minute of faults for each kind of session store, judged by every rule.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { join } from 'node:path';

import { PLACE } from '../../chaos.mjs';
import { RULES } from '../../chaos/check.mjs';
import { readHistory } from '../../chaos/history.mjs';
import { runSeed } from '../../chaos/run.mjs';
import { topologyOf } from '../../chaos/schedule.mjs';

// One seed for each kind of store, each with key changes; and one where links to session services are slow or stop.
const RUNS = [{ seed: 13 }, { seed: 11 }, { seed: 3 }, { seed: 45, kinds: ['delay', 'hold', 'hold-one-way'] }];
const SECONDS = 30;
const LEAST = { faults: 3, requests: 300, alive: 200, over: 10, sessions: 20, endings: 10, refreshes: 8 }; // minimums that make a run meaningful

const folderOf = (seed) => join(PLACE, String(seed));
const AT_ONCE = 2; // people, faults and settling leave a core idle most of the time

/** A promise of the result of each of RUNS. */
const results = [];
const lanes = Array.from({ length: AT_ONCE }, () => Promise.resolve());
for (const [at, { seed, kinds }] of RUNS.entries()) {
  results[at] = lanes[at % AT_ONCE].then(() => runSeed({ seed, seconds: SECONDS, folder: folderOf(seed), kinds }));
  lanes[at % AT_ONCE] = results[at].catch(() => {}); // its own tests report the error
}

for (const [at, { seed, kinds }] of RUNS.entries()) {
  describe(`seed ${seed}, sessions in ${topologyOf(seed)}`, () => {
    let result;
    before(async () => { result = await results[at]; });

    for (const { name, what } of RULES) {
      test(what, () => {
        const found = result.violations.filter(({ rule }) => rule === name);
        assert.deepEqual(found, [], `judged again by: node dev/chaos/check.mjs ${join(result.folder, 'history.jsonl')}`);
      });
    }

    if (!kinds) test('keys changed meanwhile', () => {
      const faults = readHistory(join(folderOf(seed), 'history.jsonl')).filter(({ type }) => type === 'fault');
      assert.ok(faults.some(({ kind }) => kind === 'new-keys'));
    });

    test('people signed in, looked around, had tokens refreshed and were signed out meanwhile', () => {
      for (const [name, least] of Object.entries(LEAST)) assert.ok(result.counts[name] >= least, `${name}: ${result.counts[name]}`);
    });
  });
}
