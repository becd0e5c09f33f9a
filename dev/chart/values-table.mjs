// The chart's README.md with the table of values: the schema's description and the default in values.yaml of each.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { ROOT } from '../stack.mjs';

const IMAGE = '`repository`, and `tag` (empty: the product\'s version) or `digest`.';
const LONGEST = 40; // the table does not show longer defaults

function shown(value) {
  const text = JSON.stringify(value);
  if (text === undefined || text === '""') return '';
  return text.length > LONGEST ? 'see values.yaml' : `\`${text.replace(/^"(.*)"$/, '$1')}\``;
}

function rows(schema, values, path) {
  return Object.entries(schema.properties).flatMap(([name, field]) => {
    const [where, value] = [[...path, name], values?.[name]];
    if (field.$ref?.endsWith('/image')) return [`| \`${where.join('.')}\` | ${shown(value.repository)} | ${field.description} ${IMAGE} |`];
    const own = field.description && name !== 'global' ? [`| \`${where.join('.')}\` | ${shown(field.properties ? undefined : value)} | ${field.description} |`] : [];
    return field.properties ? [...own, ...rows(field, value, where)] : own;
  });
}

const read = (name) => readFileSync(join(ROOT, 'k8s/chart', name), 'utf8');

function table() {
  const schema = JSON.parse(read('values.schema.json'));
  return ['| Value | Default | |', '|---|---|---|', ...rows(schema, parse(read('values.yaml')), [])].join('\n');
}

/** What `helm show readme` prints: commands and values for a reader of the package. */
export function writeReadme() {
  const { description, kubeVersion, version } = parse(read('Chart.yaml'));
  const least = read('ci/least-values.yaml').replace(/^#.*\n/gm, '');
  writeFileSync(join(ROOT, 'k8s/chart/README.md'), `<!-- Made by \`make gen\`: change dev/chart/values-table.mjs, values.yaml or values.schema.json. -->
# Vestibule ${version}

${description} Needs Kubernetes ${kubeVersion.replace(/^>=|-0$/g, '')} or newer, cert-manager unless \`certManager.enabled\` is false, and one namespace for one release.

The smallest set of values:

\`\`\`yaml
${least}\`\`\`

1. Create the namespace and the Secrets: [their keys](../../docs/kubernetes/install.md#3-secrets).
2. \`helm install vestibule . --namespace vestibule --values values.yaml\`. The notes say what to register at the provider.
3. \`helm test vestibule --namespace vestibule\` runs the doctor of both programs: provider, session service, store, certificates, clocks.

Upgrades, rollbacks, autoscaling, Argo CD: [the manual](../../docs/kubernetes/helm.md).

## Values

${table()}
`);
}
