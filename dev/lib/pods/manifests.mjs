// Rendered manifests as objects, and the settings of their containers. Unsupported fields raise an error.
import { spawnSync } from 'node:child_process';

import { Problem } from '../build.mjs';

const UNITS = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };
const OUTPUT_BYTES = 64 * 1024 * 1024;

function kubectl(args, input) {
  const { status, stdout, stderr, error } = spawnSync('kubectl', args, { input, encoding: 'utf8', maxBuffer: OUTPUT_BYTES });
  if (status !== 0) throw new Problem(`kubectl ${args.join(' ')}: ${error?.message ?? stderr}`);
  return stdout;
}

/** The objects of an overlay. `kubectl label --local` turns YAML into JSON and needs no server. */
export function render(overlay) {
  const json = kubectl(['label', '--local', '--filename', '-', '--output', 'json', 'vestibule.auth/rendered=yes'], kubectl(['kustomize', overlay]));
  return json.split(/^(?=\{)/m).filter((part) => part.trim()).map((part) => JSON.parse(part));
}

/** Returns `find(kind, name)` for the objects of one namespace. */
export const finder = (objects, namespace) => (kind, name) => {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name && object.metadata.namespace === namespace);
  if (!found) throw new Problem(`there is no ${kind} ${name} in ${namespace}`);
  return found;
};

/** The content of a ConfigMap or a Secret: key → bytes. */
export const contentsOf = ({ kind, data = {} }) => Object.entries(data).map(([key, value]) => [key, Buffer.from(value, kind === 'Secret' ? 'base64' : 'utf8')]);

/** The bytes of a quantity such as `128Mi`. */
function bytesOf(quantity) {
  const [, count, unit] = /^(\d+)(Ki|Mi|Gi)$/.exec(quantity) ?? [];
  if (!unit) throw new Problem(`${quantity} is no quantity of memory that is known here`);
  return Number(count) * UNITS[unit];
}

/** Replaces `$(NAME)` with the value of the variable. */
const expand = (text, env) => text.replaceAll(/\$\(([^)]+)\)/g, (whole, name) => env[name] ?? whole);

/** The variables of a container, in the order that Kubernetes uses. */
function environment({ name: container, env: listed = [], envFrom = [] }, pod, find) {
  const env = {};
  for (const { configMapRef } of envFrom) for (const [key, value] of contentsOf(find('ConfigMap', configMapRef.name))) env[key] = value.toString();
  const fields = { 'metadata.name': pod.name, 'status.podIP': pod.ip };
  for (const { name, value = '', valueFrom: { fieldRef, configMapKeyRef } = {}, valueFrom } of listed) {
    let found = expand(value, env);
    if (configMapKeyRef) found = new Map(contentsOf(find('ConfigMap', configMapKeyRef.name))).get(configMapKeyRef.key)?.toString();
    else if (valueFrom) found = fields[fieldRef?.fieldPath];
    if (found === undefined) throw new Problem(`${container}: the source of ${name} is not known here`);
    env[name] = found;
  }
  return env;
}

/** The arguments of `podman create` for one container; `image(name)` maps a manifest's image to a local one. */
export function createArguments(container, pod, { find, image }) {
  const { spec } = pod.template;
  const env = environment(container, pod, find);
  const { runAsUser, runAsGroup, readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = { ...spec.securityContext, ...container.securityContext };
  const memory = String(bytesOf(container.resources.limits.memory));
  const [program, ...words] = [...container.command ?? [], ...container.args ?? []].map((part) => expand(part, env));
  const own = container.command !== undefined;
  return [
    '--pod', pod.id, '--name', `${pod.id}-${container.name}`, '--pull', 'never', '--restart', 'always', '--log-driver', 'k8s-file',
    '--user', `${runAsUser}:${runAsGroup}`, '--group-add', String(spec.securityContext.fsGroup ?? runAsGroup), '--memory', memory, '--memory-swap', memory,
    ...(readOnlyRootFilesystem ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ...(allowPrivilegeEscalation === false ? ['--security-opt', 'no-new-privileges'] : []),
    ...(capabilities?.drop ?? []).flatMap((name) => ['--cap-drop', name]),
    ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ...(container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly }) => ['--volume', `${pod.volumes.get(name)}:${mountPath}${readOnly ? ':ro' : ''}`]),
    ...(own ? ['--entrypoint', JSON.stringify([program])] : []),
    image(container.image), ...(own || program === undefined ? [] : [program]), ...words,
  ];
}
