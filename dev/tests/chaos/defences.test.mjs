// The table of what chaos has to find.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mistakesOf } from '../../chaos/defences/mistakes.mjs';
import { DEFENCES } from '../../chaos/defences/table.mjs';

test('every defence is at its place in the sources, and rules that exist have to find it', () => {
  assert.deepEqual(mistakesOf(DEFENCES), []);
  assert.ok(DEFENCES.length >= 7);
});

test('a defence that does not fit is told', () => {
  const wrong = { id: 'gone', rules: ['no-rule'], places: [{ file: 'auth-edge/src/routes.rs', find: 'what is not there', replace: 'OFF' }] };
  assert.deepEqual(mistakesOf([wrong]), ['gone: there is no rule no-rule', 'gone: not once in auth-edge/src/routes.rs: what is not there']);
});
