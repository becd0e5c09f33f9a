// The chart's generated files: copies from the Kustomize manifests, the names of all settings, the table of values.
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';
import { settingsFile } from './settings-file.mjs';
import { writeReadme } from './values-table.mjs';

const FILES = join(ROOT, 'k8s/chart/files');

/** The place in the chart of each file or folder of k8s. */
const COPIES = {
  'base/edge/routes.toml': 'edge-routes/routes.toml',
  'components/mtls/callers.toml': 'session-svc-callers/callers.toml',
  'components/monitoring/alerts.yaml': 'monitoring/alerts.yaml',
  'components/monitoring/objectives.yaml': 'monitoring/objectives.yaml',
  'components/monitoring/vestibule.json': 'vestibule-dashboard/vestibule.json',
  'components/redis/scripts': 'redis-scripts',
  'components/redis/settings': 'redis-settings',
};

export function writeChart() {
  rmSync(FILES, { recursive: true, force: true });
  for (const [from, to] of Object.entries(COPIES)) cpSync(join(ROOT, 'k8s', from), join(FILES, to), { recursive: true });
  writeFileSync(join(FILES, 'settings.yaml'), settingsFile());
  writeReadme();
}
