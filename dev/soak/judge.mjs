// Whether figures of an hour are flat: in the last half of it, for what comes before is people arriving and caches being filled.

/** Least squares of [x, y] points: how much y grows with x. */
export function slopeOf(points) {
  const mean = (at) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  const under = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return under === 0 ? 0 : over / under;
}

/** What a figure may grow by in the judged half: a part of its mean, and a number for those that are small. */
export const BOUNDS = {
  bytes: { part: 0.05, least: 3 << 20, why: 'arenas and caches of a bounded size settle for long; a leak of a hundred bytes a request would be more' },
  descriptors: { part: 0.1, least: 4, why: 'a connection more or less at the moment of a sample' },
  keys: { part: 0.15, least: 30, why: 'people sign in and out by chance, and marks of that are kept for ten minutes' },
};

/**
 * Judges series {name, figure, points: [[ms, value], …]}: each with `mean`, `growth` over the last half, `bound`, and whether it `isFlat`.
 * A series without two points in that half is not flat: nobody looked.
 */
export function judge(series) {
  return series.map(({ name, figure, points }) => {
    const half = (points.at(0)?.[0] ?? 0) + ((points.at(-1)?.[0] ?? 0) - (points.at(0)?.[0] ?? 0)) / 2;
    const last = points.filter(([ms]) => ms >= half);
    const mean = last.reduce((sum, [, value]) => sum + value, 0) / last.length;
    const growth = last.length < 2 ? NaN : slopeOf(last) * (last.at(-1)[0] - last[0][0]);
    const { part, least } = BOUNDS[figure];
    const bound = Math.max(least, part * mean);
    return { name, figure, mean, growth, bound, isFlat: growth <= bound };
  });
}
