// The dashboard for Grafana, as its sidecar reads it.
const WIDTH = 12;
const HEIGHT = 8;
const SOURCE = { type: 'prometheus', uid: '${source}' };

const VARIABLES = [
  { name: 'source', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
  { name: 'namespace', label: 'Namespace', type: 'query', datasource: SOURCE, query: 'label_values(vestibule_build_info, namespace)', refresh: 2 },
];

function timeseries({ title, about, unit, queries }, id, gridPos) {
  return {
    id,
    title,
    ...(about && { description: about }),
    type: 'timeseries',
    datasource: SOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(({ ask, as }, at) => ({ refId: String.fromCharCode(65 + at), expr: ask, legendFormat: as })),
  };
}

/** Rows of two panels side by side, each below a title. */
export function dashboard({ rows }) {
  const panels = [];
  let y = 0;
  for (const row of rows) {
    panels.push({ id: panels.length + 1, title: row.title, type: 'row', collapsed: false, gridPos: { h: 1, w: 2 * WIDTH, x: 0, y }, panels: [] });
    y += 1;
    row.panels.forEach((panel, at) => {
      const place = { h: HEIGHT, w: WIDTH, x: (at % 2) * WIDTH, y: y + Math.floor(at / 2) * HEIGHT };
      panels.push(timeseries(panel, panels.length + 1, place));
    });
    y += Math.ceil(row.panels.length / 2) * HEIGHT;
  }
  return { uid: 'vestibule', title: 'Vestibule', schemaVersion: 39, refresh: '1m', time: { from: 'now-6h', to: 'now' }, templating: { list: VARIABLES }, panels };
}
