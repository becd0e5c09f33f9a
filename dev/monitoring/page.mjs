// The tables of docs/metrics.md: each metric, its labels and the panels that show it.
import { asked } from './source.mjs';

const PROGRAMS = { edge: 'auth-edge', service: 'session-svc' };
const CHAPTERS = { 'edge,service': 'Both programs', edge: 'Edge', service: 'Session service' };

function label([name, values]) {
  if (Array.isArray(values)) return `\`${name}\`: ${values.map((value) => `\`${value}\``).join(', ')}`;
  return `\`${name}\`: ${values.bound}`;
}

function line(metric, panels) {
  const labels = Object.entries(metric.labels ?? {}).map(label).join('<br>') || 'none';
  const rare = metric.rare ? ` Only with ${metric.rare}.` : '';
  const unit = metric.unit ? `, ${metric.unit}` : '';
  return `| \`${metric.name}\` | ${metric.type}${unit} | ${labels} | ${metric.meaning.replaceAll(/\s*\n\s*/g, ' ')}${rare} | ${panels.join(', ') || 'none'} |`;
}

/** One table for each kind of program. */
export function metricsPage({ metrics, rows }) {
  const panels = rows.flatMap((row) => row.panels);
  const shown = ({ name }) => panels.filter((panel) => panel.queries.some(({ ask }) => asked(ask, metrics).includes(name))).map(({ title }) => title);
  const chapters = Object.entries(CHAPTERS).map(([of, title]) => {
    const lines = metrics.filter((metric) => metric.of.join() === of).map((metric) => line(metric, shown(metric)));
    return [`## ${title}`, '', `Exported by ${of.split(',').map((name) => `\`${PROGRAMS[name]}\``).join(' and ')}.`, '', '| Metric | Type, unit | Labels | Meaning | Panels |', '|---|---|---|---|---|', ...lines, ''];
  });
  return chapters.flat().join('\n');
}
