// Lines over time as an SVG: one panel for each figure, one line for each series.

const [WIDTH, HEIGHT, LEFT, TOP, GAP] = [860, 180, 90, 30, 60];
const COLOURS = ['#1b6ca8', '#c8553d', '#2f7d4f', '#8a4fa3', '#b0872b', '#4a4a4a'];
const UNITS = { bytes: ['MB', 1e-6], descriptors: ['descriptors', 1], keys: ['keys', 1] };
const MINUTE_MS = 60_000;

const round = (value) => Math.round(value * 10) / 10;

function panel(figure, series, at) {
  const [unit, scale] = UNITS[figure];
  const end = Math.max(...series.flatMap(({ points }) => points.map(([ms]) => ms)), 1);
  const most = Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value * scale)), 1) * 1.1;
  const top = TOP + at * (HEIGHT + GAP);
  const x = (ms) => round(LEFT + ms / end * WIDTH);
  const y = (value) => round(top + HEIGHT - value / most * HEIGHT);
  const lines = series.map(({ name, points }, line) => `<g fill="none" stroke="${COLOURS[line % COLOURS.length]}" stroke-width="1.5"><title>${name}</title>`
    + `<polyline points="${points.map(([ms, value]) => `${x(ms)},${y(value * scale)}`).join(' ')}"/></g>`
    + `<text x="${LEFT + WIDTH + 8}" y="${top + 14 + line * 16}" fill="${COLOURS[line % COLOURS.length]}">${name}</text>`);
  const ticks = [0, 0.5, 1].map((part) => `<text x="${LEFT - 8}" y="${y(part * most) + 4}" text-anchor="end">${round(part * most)}</text>`
    + `<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y(part * most)}" y2="${y(part * most)}" stroke="#ddd"/>`
    + `<text x="${x(part * end)}" y="${top + HEIGHT + 16}" text-anchor="middle">${round(part * end / MINUTE_MS)} min</text>`);
  return `<text x="${LEFT}" y="${top - 8}" font-weight="bold">${unit}</text>${ticks.join('')}${lines.join('')}`;
}

/** A document with a panel for each figure of these series. */
export function plot(series) {
  const figures = [...new Set(series.map(({ figure }) => figure))];
  const panels = figures.map((figure, at) => panel(figure, series.filter((one) => one.figure === figure), at));
  const height = TOP + figures.length * (HEIGHT + GAP);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${LEFT + WIDTH + 150}" height="${height}" font-family="sans-serif" font-size="12">\n`
    + `<rect width="100%" height="100%" fill="white"/>\n${panels.join('\n')}\n</svg>\n`;
}
