// What an hour's figures are judged and drawn by.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { judge, slopeOf } from '../../soak/judge.mjs';
import { plot } from '../../soak/plot.mjs';

const MINUTES = Array.from({ length: 121 }, (_, at) => at * 30_000);
const series = (figure, value) => ({ name: 'edge', figure, points: MINUTES.map((ms) => [ms, value(ms / 60_000)]) });
const isFlat = (figure, value) => judge([series(figure, value)])[0].isFlat;

test('the slope of a line is its own', () => assert.equal(slopeOf([[0, 1], [1, 3], [2, 5]]), 2));

test('what grows at first and then no more is flat', () => {
  assert.ok(isFlat('bytes', (minute) => (40 << 20) + Math.min(minute, 25) * (2 << 20)));
  assert.ok(isFlat('descriptors', (minute) => 40 + (minute % 3)));
  assert.ok(isFlat('bytes', (minute) => (90 << 20) - minute * (1 << 20)));
});

test('what goes on growing is not', () => {
  assert.ok(!isFlat('bytes', (minute) => (40 << 20) + minute * (300 << 10)));
  assert.ok(!isFlat('descriptors', (minute) => 40 + minute));
  assert.ok(!isFlat('keys', (minute) => 100 + minute * 3));
});

test('what nobody looked at is not flat', () => assert.equal(judge([{ name: 'edge', figure: 'keys', points: [] }])[0].isFlat, false));

test('the plot has a panel for each figure and a line for each series', () => {
  const drawing = plot([series('bytes', () => 1e6), { ...series('bytes', () => 2e6), name: 'session' }, series('keys', () => 5)]);
  assert.equal(drawing.match(/<polyline /g).length, 3);
  assert.equal(drawing.match(/font-weight="bold"/g).length, 2);
  assert.match(drawing, /^<svg [^>]+>[\s\S]*<\/svg>\n$/);
});
