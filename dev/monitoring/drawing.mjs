// Panels as pictures: lines over time, with a legend, as plain HTML and SVG.
const [WIDTH, HEIGHT] = [560, 170];
const ROW_PX = 36;
const PANEL_PX = 262;
const COLOURS = ['#3274d9', '#e0752d', '#299c46', '#c4162a', '#8f3bb8', '#b8a100', '#1f8a99', '#a352cc', '#705da0', '#5195ce'];
const LEGEND_MAX = 10;
const UNITS = { s: 's', bytes: 'B', percentunit: '%', reqps: '/s', ops: '/s', short: '' };

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const told = (value, unit) => {
  const shown = unit === 'percentunit' ? value * 100 : value;
  const [divisor, prefix] = shown >= 1e6 ? [1e6, 'M'] : shown >= 1e3 ? [1e3, 'k'] : [1, ''];
  return `${Number((shown / divisor).toPrecision(3))}${prefix} ${UNITS[unit] ?? unit}`;
};
const legend = (as, labels) => as.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => labels[name] ?? '');

function drawn(panel, lines) {
  const points = lines.flatMap(({ values }) => values);
  const [begin, end] = [Math.min(...points.map(([at]) => at)), Math.max(...points.map(([at]) => at))];
  const most = Math.max(...points.map(([, value]) => value), 0) || 0.01;
  const x = (at) => ((at - begin) / (end - begin || 1)) * WIDTH;
  const y = (value) => HEIGHT - (value / most) * (HEIGHT - 12);
  const paths = lines.map(({ values }, at) => `<polyline fill="none" stroke="${COLOURS[at % COLOURS.length]}" stroke-width="1.5" points="${values.map(([when, value]) => `${x(when).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}"/>`);
  const names = lines.slice(0, LEGEND_MAX).map(({ name, values }, at) => `<span style="color:${COLOURS[at % COLOURS.length]}">${escape(name)} ${told(values.at(-1)[1], panel.unit)}</span>`);
  const rest = lines.length > LEGEND_MAX ? [`<span>and ${lines.length - LEGEND_MAX} more</span>`] : [];
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}">${paths.join('')}<text x="2" y="10">${told(most, panel.unit)}</text></svg><p>${[...names, ...rest].join(' · ')}</p>`;
}

/** All rows; `ask` gives a query's samples over time. Tells which panels have none. */
export async function page(rows, ask) {
  const empty = [];
  const parts = [];
  for (const row of rows) {
    const panels = [];
    for (const panel of row.panels) {
      const answers = await Promise.all(panel.queries.map(async ({ ask: query, as }) => (await ask(query)).map(({ metric, values }) => ({
        name: legend(as, metric),
        values: values.map(([at, value]) => [at, Number(value)]).filter(([, value]) => Number.isFinite(value)),
      }))));
      const lines = answers.flat().filter(({ values }) => values.length > 0);
      if (lines.length === 0) empty.push(panel.title);
      panels.push(`<section><h3>${escape(panel.title)}</h3>${lines.length > 0 ? drawn(panel, lines) : '<p class="none">No data</p>'}</section>`);
    }
    parts.push(`<h2>${escape(row.title)}</h2><div>${panels.join('')}</div>`);
  }
  const style = `body{font:12px sans-serif;margin:8px;background:#f4f5f5}h2{margin:8px 0;font-size:15px}div{display:grid;grid-template-columns:1fr 1fr;gap:8px}
    section{background:#fff;border:1px solid #ddd;padding:6px;height:${PANEL_PX - 22}px;overflow:hidden}h3{margin:0;font-size:13px}svg{width:100%;height:${HEIGHT}px}p{margin:2px 0}.none{color:#888;padding:40px}`;
  const height = rows.reduce((sum, row) => sum + ROW_PX + Math.ceil(row.panels.length / 2) * PANEL_PX, 16);
  return { html: `<!doctype html><meta charset="utf-8"><title>Vestibule</title><style>${style}</style>${parts.join('')}`, height, empty };
}
