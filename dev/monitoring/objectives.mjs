// Recording rules and alerts of the objectives: how fast errors use up their budget, over several windows at once.
// So an alert fires soon if much fails, fires later if little fails, and stops when the failures stop.
export const RUNBOOKS = 'https://github.com/vestibule-auth/vestibule/blob/main/docs/runbooks.md';
export const WINDOWS = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'];

/** Pairs of windows of an alert (the long shows that it matters, the short that it lasts) and the burn rate. */
const BURNS = {
  Fast: { severity: 'critical', for: '2m', long: '6h', pairs: [['1h', '5m', 14.4], ['6h', '30m', 6]] },
  Slow: { severity: 'warning', for: '15m', long: '3d', pairs: [['1d', '2h', 3], ['3d', '6h', 1]] },
};
/** Fewer failures than this raise no alert, even if their share is large. */
const LEAST = 10;
const SECONDS = { '6h': 6 * 3600, '3d': 3 * 86400 };

const within = (expression, window) => expression.replaceAll('$window', window);
const named = ({ name }, window) => `vestibule:${name}:errors_ratio_${window}`;
const budget = ({ goal }) => Number((1 - goal / 100).toFixed(6));

function failed(objective, window) {
  const orNone = (part) => `(${within(part, window)} or 0 * ${within(objective.all, window)})`;
  return objective.except ? `clamp_min(${orNone(objective.failed)} - ${orNone(objective.except)}, 0)` : orNone(objective.failed);
}

function alert(objective, speed) {
  const { severity, long, pairs, ...timing } = BURNS[speed];
  const name = `Vestibule${objective.alert}Burns${speed}`;
  const above = pairs.map(([far, near, times]) => {
    const limit = Number((times * budget(objective)).toFixed(6));
    return `(${named(objective, far)} > ${limit} and ${named(objective, near)} > ${limit})`;
  });
  return {
    alert: name,
    expr: `(${above.join('\n  or ')})\nand ${failed(objective, long)} * ${SECONDS[long]} > ${LEAST}\n`,
    for: timing.for,
    labels: { severity },
    annotations: {
      summary: `${objective.title}: {{ $value | humanizePercentage }} fail, more than the goal of ${objective.goal} % allows.`,
      description: `${objective.promise} ${speed === 'Fast' ? 'At this rate the month\'s error budget is used up within days.' : 'At this rate the error budget does not last the month.'}`,
      runbook_url: `${RUNBOOKS}#${name.toLowerCase()}`,
    },
  };
}

/** The rules as Prometheus' operator reads them. */
export function objectiveRules({ objectives, recordings }) {
  const record = (window) => (objective) => ({ record: named(objective, window), expr: `${failed(objective, window)} / ${within(objective.all, window)}` });
  const recorded = (windows) => windows.flatMap((window) => objectives.map(record(window)));
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'vestibule-objectives' },
    spec: {
      groups: [
        { name: 'vestibule-errors', rules: recorded(WINDOWS.filter((window) => !window.endsWith('d'))) },
        { name: 'vestibule-errors-of-days', interval: '2m', rules: recorded(WINDOWS.filter((window) => window.endsWith('d'))) },
        { name: 'vestibule-objectives', rules: objectives.flatMap((objective) => Object.keys(BURNS).map((speed) => alert(objective, speed))) },
        { name: 'vestibule-sessions-there-are', rules: recordings },
      ],
    },
  };
}

/** The table of docs/objectives.md. */
export function objectivesTable({ objectives }) {
  const minutes = (objective) => `${(budget(objective) * 30 * 24 * 60).toFixed(0)}`;
  const alerts = (objective) => Object.keys(BURNS).map((speed) => `Vestibule${objective.alert}Burns${speed}`).map((name) => `[${name}](runbooks.md#${name.toLowerCase()})`).join('<br>');
  return ['| Objective | Goal | Minutes of outage a month | What counts | Alerts |', '|---|---|---|---|---|', ...objectives.map((one) => `| **${one.title}**: ${one.promise} | ${one.goal} % | ${minutes(one)} | ${one.counts} | ${alerts(one)} |`), ''].join('\n');
}
