// The report of a run in target/bench: goals and figures as tables.
import { judged } from './judge.mjs';
import { goalsTable, rowsTable } from './tables.mjs';
import { machine } from './words.mjs';

export function report(record) {
  return ['# Benchmark', machine(record.run), goalsTable(judged(record)), rowsTable(record.rows), ''].join('\n\n');
}
