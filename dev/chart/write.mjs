// The templates of the Helm chart, made of what kustomize makes of the base and each component: docs/decisions/helm-chart.md.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { parameters, WHOLES } from './parameters.mjs';
import { printer } from './print.mjs';
import { developmentProvider, product } from './rendered.mjs';
import { settingsFile } from './settings-file.mjs';
import { FIRST, LAST, SWITCHES, withoutSwitch } from './switches.mjs';
import { note, slot } from './tree.mjs';
import { writeReadme } from './values-table.mjs';
import { Problem } from '../lib/build.mjs';
import { ROOT } from '../stack.mjs';

const CHART = join(ROOT, 'k8s/chart');
const MADE = '{{- /* Made by `make gen` from k8s/base and k8s/components: change those. */}}';
const write = (name, lines) => {
  mkdirSync(dirname(join(CHART, name)), { recursive: true });
  writeFileSync(join(CHART, name), lines);
};

/** Everything kustomize can make, as one tree that knows which component is the reason for which part. */
function everything(kubectl) {
  const rendered = new Map();
  const render = (components) => {
    const key = components.join();
    if (!rendered.has(key)) rendered.set(key, product(kubectl, components));
    return rendered.get(key);
  };
  const ordered = (components) => Object.keys(SWITCHES).filter((name) => components.includes(name));
  const whole = slot(render([FIRST, LAST]));
  for (const [component, { needs = [] }] of Object.entries(SWITCHES)) {
    const before = render([FIRST, ...ordered(needs), LAST]);
    note(whole, before, render([FIRST, ...ordered([...needs, component]), LAST]), component, needs);
  }
  const provider = slot({});
  provider.variants[0].node = { map: new Map() };
  note(provider, {}, developmentProvider(kubectl), 'dev-idp', []);
  return new Map([...whole.variants[0].node.map, ...provider.variants[0].node.map]);
}

/** The place in an object that a path leads to. */
function lead(place, path) {
  return path.split(/[.[\]]+/).reduce((at, key) => {
    const { node } = at.variants.find((variant) => variant.node);
    return node.map ? node.map.get(key) : node.list[Number(key)];
  }, place);
}

/** The authority of the chart's own, for an installation without another issuer. */
const OWN_AUTHORITY = new Set(['Issuer/vestibule-root', 'Certificate/vestibule-authority', 'Issuer/vestibule']);

/** Settings to which an installation adds its own. */
const WITH_OWN = { 'edge-settings': 'edge.settings', 'session-svc-settings': 'sessionService.settings', 'provider-settings': 'provider.settings' };

/** A ConfigMap's contents are a template of their own, of which its name has the hash. */
function configMap(name, place, print) {
  const data = print.place(`ConfigMap/${name}`, 'data', lead(place, 'data'));
  const define = (what, lines) => [`{{- define "vestibule.${what}.${name}" -}}`, ...lines, '{{- end }}'];
  const own = WITH_OWN[name];
  const contents = own ? [...define('made', data), ...define('data', [`{{- include "vestibule.settings" (list (include "vestibule.made.${name}" .) .Values.${own}) }}`])] : define('data', data);
  return [...contents, ...define('configmap', print.object(`ConfigMap/${name}`, place)), `{{- include "vestibule.configmap.${name}" . }}`];
}

/** Workloads whose doctor `helm test` runs, in a pod like theirs: templates/tests/doctor.yaml. */
const WITH_DOCTOR = ['edge', 'session-svc'].map((name) => `Deployment/${name}`);

/** A template that others can include too. */
const reusable = (name, lines) => [`{{- define "${name}" -}}`, ...lines, '{{- end }}', `{{- include "${name}" . }}`];

/** Writes the generated part of the chart. */
export function writeChart(kubectl) {
  const missing = withoutSwitch();
  if (missing.length > 0) throw new Problem(`no switch in dev/chart/switches.mjs for: ${missing.join(', ')}`);
  for (const folder of ['templates/made', 'files']) rmSync(join(CHART, folder), { recursive: true, force: true });
  const objects = everything(kubectl);
  const rules = parameters((name, contents) => {
    write(`files/${name}`, contents);
    return `files/${name}`;
  });
  write('files/settings.yaml', settingsFile());
  const print = printer(rules);
  const settings = [];
  for (const [name, place] of objects) {
    const isConfigMap = name.startsWith('ConfigMap/');
    if (isConfigMap && place.variants.some(({ node }) => node?.map.get('immutable'))) settings.push(name.replace('ConfigMap/', ''));
    let printed = isConfigMap ? configMap(name.replace('ConfigMap/', ''), place, print) : print.object(name, place);
    if (WITH_DOCTOR.includes(name)) printed = reusable(`vestibule.${name.replace('/', '.').toLowerCase()}`, printed);
    const lines = OWN_AUTHORITY.has(name) ? ['{{- if eq .Values.certManager.issuerRef.name "vestibule" }}', ...printed, '{{- end }}'] : printed;
    write(`templates/made/${name.replace('/', '-').toLowerCase()}.yaml`, `${[MADE, ...lines].join('\n')}\n`);
  }
  const rendered = settings.map((name) => `(include "vestibule.configmap.${name}" .)`).join(' ');
  write('templates/made/configmaps-in-use.yaml', `${MADE}\n{{- include "vestibule.configmaps-in-use" (list . (list ${rendered})) }}\n`);
  const defined = WHOLES.filter(({ define }) => define).flatMap(({ object, path, define }) => {
    const texts = [...objects].filter(([name]) => (object instanceof RegExp ? object.test(name) : object === name)).map(([name, place]) => print.place(name, path, lead(place, path)).join('\n'));
    if (new Set(texts).size !== 1) throw new Problem(`components do not say the same of ${object} ${path}`);
    return [`{{- define "${define}" -}}`, texts[0], '{{- end }}', ''];
  });
  write('templates/made/_controllers.tpl', [MADE, ...defined].join('\n'));
  if (rules.unused().length > 0) throw new Problem(`rules of dev/chart/parameters.mjs that fit nothing:\n  ${rules.unused().join('\n  ')}`);
  writeReadme();
}
