// The charts of the page in Mermaid's xychart: GitHub and the documents' site draw them.

const list = (values) => `[${values.join(', ')}]`;
const quoted = (text) => `"${String(text).replaceAll('"', "'")}"`;
const chart = (head, lines) => ['```mermaid', `xychart-beta${head}`, ...lines.map((line) => `  ${line}`), '```'].join('\n');
const count = (value) => value.toLocaleString('en-US');
const axis = (unit, values) => `y-axis ${quoted(unit)} 0 --> ${Number((Math.max(...values) * 1.1).toPrecision(2))}`;

/** A chart of lines; each line has a value at each step. */
function linesOf(title, across, unit, steps, series) {
  return chart('', [
    `title ${quoted(title)}`, `x-axis ${quoted(across)} ${list(steps.map((step) => quoted(count(step))))}`, axis(unit, series.flat()), ...series.map((values) => `line ${list(values.map((value) => value.toFixed(2)))}`),
  ]);
}

/** The cost of operations over the number of sessions. */
export function growthChart({ series: { growth } }) {
  const names = growth.map(({ id }) => id).join(', ');
  return linesOf(`Cost over the number of sessions: ${names}`, 'sessions in the store', 'CPU µs per operation', growth[0].points.map(({ sessions }) => sessions), growth.map(({ points }) => points.map(({ micros }) => micros)));
}
