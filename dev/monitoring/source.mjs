// Reads the sources of the pages, the dashboard and the rules.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { installPackages } from '../lib/build.mjs';
import { ROOT } from '../stack.mjs';

const MATCHERS = { $edge: 'job="vestibule-edge"', $service: 'job="vestibule-session-svc"', $both: 'job=~"vestibule-.+"' };

/** The YAML parser, which comes with the tools of the chart. */
export async function yamlTools(say = () => {}) {
  await installPackages('dev/chart', say);
  return createRequire(join(ROOT, 'dev/chart/package.json'))('yaml');
}

/** A query with its matchers written out. */
export const query = (ask) => ask.replaceAll(/\$(edge|service|both)\b/g, (name) => `${MATCHERS[name]}, namespace="$namespace"`);

/** The metrics, the panels that show them, the objectives and the alerts. */
export async function monitoring(say) {
  const YAML = await yamlTools(say);
  const read = (file) => YAML.parse(readFileSync(join(ROOT, file), 'utf8'));
  const { metrics, dashboard } = read('dev/monitoring/metrics.yaml');
  const rows = dashboard.map(({ row, panels }) => ({
    title: row,
    panels: panels.map((panel) => ({ ...panel, queries: panel.queries.map(({ ask, as }) => ({ ask: query(ask), as })) })),
  }));
  const { groups } = read('k8s/components/monitoring/alerts.yaml').spec;
  return { YAML, metrics, rows, ...read('dev/monitoring/objectives.yaml'), groups, alerts: groups.flatMap((group) => group.rules) };
}

/** Names of the metrics in a query; `_bucket`, `_count` and `_sum` belong to a histogram. */
export function asked(ask, metrics) {
  const words = new Set(ask.replaceAll(/"[^"]*"/g, '').match(/[a-z_:][a-z0-9_:]*/gi) ?? []);
  const series = ({ name, type }) => (type === 'histogram' ? ['_bucket', '_count', '_sum'].map((part) => name + part) : [name]);
  return metrics.filter((metric) => series(metric).some((name) => words.has(name))).map(({ name }) => name);
}
