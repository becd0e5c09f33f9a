// What a run leaves under target/bench: goals and figures as tables.
import { judged } from './judge.mjs';
import { goalsTable, rowsTable } from './tables.mjs';
import { machine } from './words.mjs';

export function report(record) {
  const missing = record.missing.map(({ id, reason }) => `- ${id} is not measured: ${reason}`);
  return ['# Benchmark', machine(record.run), goalsTable(judged(record)), rowsTable(record.rows), missing.join('\n'), ''].join('\n\n');
}
