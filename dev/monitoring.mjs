// Writes docs/metrics.md, docs/objectives.md, the dashboard and the rules of the objectives from dev/monitoring.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { Problem } from './lib/build.mjs';
import { dashboard } from './monitoring/dashboard.mjs';
import { objectiveRules, objectivesTable } from './monitoring/objectives.mjs';
import { metricsPage } from './monitoring/page.mjs';
import { monitoring } from './monitoring/source.mjs';
import { ROOT } from './stack.mjs';

/** Generated files, wholly or in part. */
export const MADE = ['docs/metrics.md', 'docs/objectives.md', 'k8s/components/monitoring/vestibule.json', 'k8s/components/monitoring/objectives.yaml'];

const [METRICS, OBJECTIVES, DASHBOARD, RULES] = MADE.map((file) => join(ROOT, file));
const [BEGIN, END] = ['<!-- made by `make gen` from dev/monitoring -->', '<!-- /made -->'];

function between(file, made) {
  const text = readFileSync(file, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Problem(`${file} needs the lines ${BEGIN} and ${END}`);
  writeFileSync(file, `${text.slice(0, begin)}${BEGIN}\n\n${made}\n${text.slice(end)}`);
}

export async function writeMonitoring(say = () => {}) {
  const source = await monitoring(say);
  const rules = objectiveRules(source);
  writeFileSync(RULES, `# Made by \`make gen\` from dev/monitoring/objectives.yaml: change that file. The promises: docs/objectives.md.\n${source.YAML.stringify(rules, { lineWidth: 0, aliasDuplicateObjects: false })}`);
  writeFileSync(DASHBOARD, `${JSON.stringify(dashboard(source), null, 1)}\n`);
  between(METRICS, metricsPage(source));
  between(OBJECTIVES, objectivesTable(source));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await writeMonitoring((text) => process.stdout.write(`${text}\n`)).catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
}
