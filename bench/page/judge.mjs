// Compares the figures of a record with their goals and bounds.
import { GOALS } from '../goals.mjs';

/** Each goal that has figures in the record: {goal, checks: [{row, limit, held}], held, bound}. */
export function judged({ rows }) {
  const known = new Map(rows.map((row) => [row.id, row]));
  const of = (id) => known.get(id)?.median ?? Number.NaN;
  return GOALS.flatMap((goal) => {
    const checks = goal.checks.filter(({ row }) => known.has(row)).map(({ row, atMost }) => {
      const limit = atMost(of);
      return { row: known.get(row), limit, held: known.get(row).median <= limit };
    });
    if (checks.length === 0) return [];
    return [{ goal, checks, held: checks.every((check) => check.held), bound: besideBound(goal, known) }];
  });
}

/** The ratio of a figure to its bound, and the name of the bound. */
function besideBound({ bound: [ours, bound] = [] }, known) {
  if (!known.has(ours) || !known.has(bound)) return undefined;
  return { times: known.get(ours).median / known.get(bound).median, name: known.get(bound).work };
}
