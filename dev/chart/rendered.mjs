// What kustomize makes of the base and some components: objects by their names, without the hash in the name of a ConfigMap.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { parseAllDocuments, stringify } from 'yaml';

import { ROOT } from '../stack.mjs';

export const NAMESPACE = 'vestibule'; // what stands for the namespace of a release
const HASH = /-[0-9a-z]{10}$/;

/** Marks a name that the chart makes of the contents of a ConfigMap. */
export const configName = (name) => `config:${name}`;

function kustomize(kubectl, fields) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'vestibule-chart-')));
  try {
    const paths = (names = []) => names.map((name) => relative(folder, join(ROOT, 'k8s', name)));
    const overlay = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', ...fields, resources: paths(fields.resources), components: paths(fields.components) };
    writeFileSync(join(folder, 'kustomization.yaml'), stringify(overlay));
    const text = execFileSync(kubectl, ['kustomize', folder], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    return parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS());
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Every string of a value, made anew. */
export function mapStrings(value, change) {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((part) => mapStrings(part, change));
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, mapStrings(part, change)]));
  return value;
}

function byName(items) {
  const hashed = new Map(items.filter(({ kind, immutable, metadata }) => kind === 'ConfigMap' && immutable && HASH.test(metadata.name)).map(({ metadata }) => [metadata.name, configName(metadata.name.replace(HASH, ''))]));
  return Object.fromEntries(items.map((item) => {
    const named = mapStrings(item, (text) => hashed.get(text) ?? text);
    const name = named.metadata.name.replace('config:', '');
    const place = (item.metadata.namespace ?? NAMESPACE) === NAMESPACE ? '' : `${item.metadata.namespace}-`;
    return [`${item.kind}/${place}${name}`, named];
  }));
}

/** The base with these components. */
export const product = (kubectl, components) => byName(kustomize(kubectl, { namespace: NAMESPACE, resources: ['base'], components: components.map((name) => `components/${name}`) }));

/** The development provider, which has a namespace of its own. */
export const developmentProvider = (kubectl) => byName(kustomize(kubectl, { resources: ['overlays/dev/provider'], components: ['components/labels'] }));
