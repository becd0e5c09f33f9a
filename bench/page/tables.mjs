// The tables that a report and the page share.
import { shown } from '../lib/measure.mjs';

const table = (head, rows) => [`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');

const times = (beside) => (beside ? `${beside.times.toPrecision(beside.times < 1 ? 2 : 3)} ×` : '');

const unitOf = (unit) => unit.replace('CPU ', '');

/** Each goal with its figures, its ratio to the bound, and whether it is held. */
export const goalsTable = (judgements) => table(
  ['', 'Work', 'Goal', 'Measured', 'Ratio to its bound', ''],
  judgements.map(({ goal, checks, held, bound }) => [
    goal.id, goal.work, goal.goal,
    checks.map(({ row, held: one }) => `${one ? '' : '**'}${shown(row).split(' (')[0]} ${unitOf(row.unit)}${one ? '' : '**'}`).join('; '),
    times(bound), held ? 'held' : '**missed**',
  ]),
);

/** Each figure with the share of each process. */
export const rowsTable = (rows) => table(
  ['', 'Work', 'Unit', 'Median (smallest to largest)', 'Ratio to its bound', ''],
  rows.map((row) => {
    const bound = row.bound && rows.find(({ id }) => id === row.bound);
    const by = row.by && Object.entries(row.by).map(([name, value]) => `${name} ${value.toFixed(1)}`).join(' · ');
    return [row.id, row.work, row.unit, shown(row), times(bound && { times: row.median / bound.median }), [by, row.perSecond && `${row.perSecond.toFixed(0)} requests/s`, row.note].filter(Boolean).join('; ')];
  }),
);

/** p50 and p99 at each rate, a column for each line; shows the rate that was reached if that is lower. */
export const latencyTable = (series) => table(
  ['Requests/s', ...series.map(({ id }) => `${id}, p50 / p99`)],
  [...new Set(series.flatMap(({ points }) => points.map(({ rate }) => rate)))].map((rate) => [rate.toLocaleString('en-US'), ...series.map(({ points }) => {
    const point = points.find((one) => one.rate === rate);
    if (!point) return '';
    return `${point.p50.toFixed(2)} / ${point.p99.toFixed(2)}${point.keptUp ? '' : `, reached ${Math.round(point.reached).toLocaleString('en-US')}`}`;
  })]),
);
