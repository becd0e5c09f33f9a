// The table of values in docs/kubernetes/helm.md and in the chart's README.md: what the schema says of each, and what values.yaml has.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { ROOT } from '../stack.mjs';

const PAGE = join(ROOT, 'docs/kubernetes/helm.md');
const BEGIN = '<!-- values: made by `make gen` -->';
const END = '<!-- /values -->';
const LONGEST = 40; // a longer default is read in values.yaml

function shown(value) {
  const text = JSON.stringify(value);
  if (text === undefined || text === '""') return '';
  return text.length > LONGEST ? 'see values.yaml' : `\`${text.replace(/^"(.*)"$/, '$1')}\``;
}

function rows(schema, definitions, values, path) {
  return Object.entries(schema.properties).flatMap(([name, field]) => {
    const [where, value] = [[...path, name], values?.[name]];
    const part = field.$ref?.endsWith('/image') ? { ...definitions.image, description: field.description } : field;
    const own = part.description && name !== 'global' ? [`| \`${where.join('.')}\` | ${shown(part.properties ? undefined : value)} | ${part.description} |`] : [];
    return part.properties ? [...own, ...rows(part, definitions, value, where)] : own;
  });
}

const read = (name) => readFileSync(join(ROOT, 'k8s/chart', name), 'utf8');

function table() {
  const schema = JSON.parse(read('values.schema.json'));
  return ['| Value | Default | |', '|---|---|---|', ...rows(schema, schema.$defs, parse(read('values.yaml')), [])].join('\n');
}

/** What `helm show readme` prints: who has the package alone finds the commands and the values there. */
export function writeReadme() {
  const { description, kubeVersion, version } = parse(read('Chart.yaml'));
  const least = read('ci/least-values.yaml').replace(/^#.*\n/gm, '');
  writeFileSync(join(ROOT, 'k8s/chart/README.md'), `<!-- Made by \`make gen\`: change dev/chart/values-table.mjs, values.yaml or values.schema.json. -->
# Vestibule ${version}

${description} Needs Kubernetes ${kubeVersion.replace(/^>=|-0$/g, '')} or newer, cert-manager unless \`certManager.enabled\` is false, and one namespace for one release.

The least that an installation says:

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

export function writeValuesTable() {
  const page = readFileSync(PAGE, 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${PAGE} needs the lines ${BEGIN} and ${END}`);
  writeFileSync(PAGE, `${page.slice(0, begin)}${BEGIN}\n\n${table()}\n\n${page.slice(end)}`);
}
