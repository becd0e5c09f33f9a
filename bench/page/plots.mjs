// The plots of the page, each from the record alone.
import { bars } from './bars.mjs';
import { curves } from './curves.mjs';
import { linear, logarithmic } from './svg.mjs';

const short = { bound: 'bound: bare axum', chain: 'bound: axum, tonic, Redis', nginx: 'nginx proxy_pass' };

/** Rows of a group of peers, the cheapest first, with some of our own bounds. */
function compared({ rows }, group, bounds = []) {
  const among = rows.filter((row) => row.group === group).map((row) => ({ ...row, label: group === 'check' ? row.label : row.label.replace(', known', ''), kind: row.ours ? 'ours' : 'peer' }));
  const beside = rows.filter(({ id }) => bounds.includes(id)).map((row) => ({ ...row, label: short[row.id], kind: 'bound' }));
  return [...among, ...beside].sort((a, b) => a.median - b.median);
}

const inWords = (all, unit) => all.map(({ label, median, digits }) => `${label}: ${median.toFixed(digits)} ${unit}`).join('; ');

function barPlot(record, group, bounds, title, unit) {
  const all = compared(record, group, bounds);
  return bars({ title, unit: `${unit}, median`, description: inWords(all, unit), bars: all });
}

function latency({ series: { latency: all } }) {
  const points = all.flatMap(({ points: some }) => some);
  const find = (wanted) => all.find(({ id }) => id === wanted);
  const curve = (id, label, kind, part, thin) => ({ label, kind, thin, points: find(id).points.map((point) => ({ x: point.rate, y: point[part], beyond: !point.keptUp })) });
  const panel = (title, id, kind, bound) => ({
    title, curves: [curve(id, 'p99', kind, 'p99'), curve(id, 'p50', kind, 'p50', true), curve(bound, 'bound p99', 'bound', 'p99'), curve(bound, 'bound p50', 'bound', 'p50', true)],
  });
  const rates = points.map(({ rate }) => rate);
  const millis = points.flatMap(({ p50, p99 }) => [p50, p99]);
  const top = 10 ** Math.ceil(Math.log10(Math.max(...millis)));
  const bottom = 10 ** Math.floor(Math.log10(Math.min(...millis)));
  return curves({
    title: 'Latency over load', unit: 'ms from when a request was due to its answer; hollow: the rate was not reached', across: 'requests a second',
    description: all.map(({ id, points: some }) => `${id}: ${some.map(({ rate, p99 }) => `p99 ${p99.toFixed(2)} ms at ${rate}/s`).join(', ')}`).join('; '),
    x: (range) => logarithmic([Math.min(...rates), Math.max(...rates)], range, [1, 2, 5]),
    y: (range) => logarithmic([bottom, top], range, [1]),
    panels: [panel('Session known to the edge', 'P1', 'ours', 'bound'), panel('Asked each time', 'P2', 'other', 'chain')],
  });
}

function growth({ series: { growth: all } }) {
  const points = all.flatMap(({ points: some }) => some);
  const sessions = points.map((point) => point.sessions);
  const kinds = { 'load Redis': ['ours'], 'list Redis': ['ours', true], 'load embedded': ['other'], 'list embedded': ['other', true] };
  return curves({
    title: 'Cost over the number of sessions', unit: 'CPU µs of an operation, in the service and in Redis', across: 'sessions in the store', direct: true, right: 120,
    description: all.map(({ id, points: some }) => `${id}: ${some.map((one) => `${one.micros.toFixed(1)} µs at ${one.sessions}`).join(', ')}`).join('; '),
    x: (range) => logarithmic([Math.min(...sessions), Math.max(...sessions)], range, [1]),
    y: (range) => linear([0, Math.max(...points.map(({ micros }) => micros)) * 1.1], range),
    panels: [{ title: '', curves: all.map(({ id, points: some }) => ({ label: id.replace('Redis', 'in Redis'), kind: kinds[id][0], thin: kinds[id][1], points: some.map((one) => ({ x: one.sessions, y: one.micros })) })) }],
  });
}

/** name → SVG. */
export const plots = (record) => ({
  'signed-in-request': barPlot(record, 'check', ['bound', 'chain'], 'CPU time of a signed-in request', 'CPU µs, all processes'),
  'sign-in': barPlot(record, 'sign-in', [], 'CPU time of a whole sign-in', 'CPU ms, all processes but the provider'),
  latency: latency(record),
  growth: growth(record),
  'cold-start': barPlot(record, 'start', [], 'Cold start', 'ms from start to ready'),
});
