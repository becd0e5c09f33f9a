// Which goals a record holds, and by how much: the figure against its goal and its bound.
import { GOALS } from '../goals.mjs';

/** Each goal of which the record has figures: {goal, checks: [{row, limit, held}], held, bound}. */
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

/** {times, name} the figure is of its bound. */
function besideBound({ bound: [ours, bound] = [] }, known) {
  if (!known.has(ours) || !known.has(bound)) return undefined;
  return { times: known.get(ours).median / known.get(bound).median, name: known.get(bound).work };
}
