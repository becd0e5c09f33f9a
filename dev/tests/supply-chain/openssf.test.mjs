// docs/openssf.md answers every criterion of both levels once, and counts its answers right.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { ROOT } from '../../stack.mjs';

const CRITERIA = { Passing: 67, Silver: 55 };
const text = readFileSync(join(ROOT, 'docs/openssf.md'), 'utf8');

for (const [level, count] of Object.entries(CRITERIA)) {
  test(`${level}: each criterion has one answer, and the sum is told`, () => {
    const rows = [...text.split(`## ${level}\n`)[1].split('\n## ')[0].matchAll(/^\| ([a-z0-9_]+) \| (met|not met|open|not applicable) \| \S.* \|$/gm)];
    assert.equal(new Set(rows.map(([, name]) => name)).size, count);
    assert.equal(rows.length, count);
    const told = new RegExp(`${level}: ([^.]+)\\.`).exec(text)[1].split(', ').map((part) => part.split(/ (.*)/));
    for (const [number, answer] of told) assert.equal(rows.filter(([, , given]) => given === answer).length, Number(number), answer);
    assert.equal(told.reduce((sum, [number]) => sum + Number(number), 0), count);
  });
}
