// The rendered manifests as objects: kubectl renders the overlay and turns it into JSON, so that nothing here reads YAML.
import { command } from './podman.mjs';

/** Objects of an overlay, as `kubectl apply -k` would send them. */
export async function render(folder) {
  const text = await command('kubectl', ['kustomize', folder]);
  return objectsOf(text);
}

/** Objects of manifests that are rendered already. */
export async function objectsOf(text) {
  // A patch that changes nothing: the way of kubectl to print what it has read, without a server.
  const json = await command('kubectl', ['label', '--local', '--filename', '-', '--output', 'json', 'vestibule.auth/rendered=yes'], { input: text });
  return json.split(/^(?=\{)/m).filter((part) => part.trim()).map((part) => JSON.parse(part));
}

/** The objects of one kind. */
export const ofKind = (objects, kind) => objects.filter((object) => object.kind === kind);

/** Whether labels fit a selector of Kubernetes; an empty selector fits everything. */
export function selects({ matchLabels = {}, matchExpressions = [] }, labels) {
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value) && matchExpressions.every(({ key, operator, values }) => {
    if (operator === 'In') return values.includes(labels[key]);
    if (operator === 'NotIn') return !values.includes(labels[key]);
    if (operator === 'Exists') return key in labels;
    return !(key in labels); // DoesNotExist
  });
}

/** A whole number of Kubernetes: `"1"`, 1, or a part of `total` as `"25%"`. */
export function amount(value, total, round = Math.ceil) {
  return String(value).endsWith('%') ? round((Number.parseInt(value, 10) / 100) * total) : Number(value);
}

/** The value a key of a ConfigMap or a Secret has, as bytes. */
export function valueOf(object, key) {
  if (object.kind === 'Secret') return object.stringData?.[key] === undefined ? bytes(object.data?.[key], 'base64') : Buffer.from(object.stringData[key]);
  return bytes(object.data?.[key], 'utf8') ?? bytes(object.binaryData?.[key], 'base64');
}

const bytes = (value, encoding) => (value === undefined ? undefined : Buffer.from(value, encoding));

/** Every key of a ConfigMap or a Secret. */
export const keysOf = (object) => [...new Set([...Object.keys(object.data ?? {}), ...Object.keys(object.stringData ?? {}), ...Object.keys(object.binaryData ?? {})])];
