// What Kubernetes would tell a container, told to podman: settings as plain values, volumes as directories of this machine.
//
// `podman play kube` would read the manifest by itself, but it ends a pod's network with its last container: a container that is
// killed could not come back at the same address, as it does in Kubernetes. Nor does it know the address of a pod (`status.podIP`),
// changes of Secrets, or init containers that go on beside the others.
import { amount, keysOf, valueOf } from './manifests.mjs';

const UNITS = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, k: 1e3, M: 1e6, G: 1e9 };
const quantity = (text) => {
  const [, number, unit] = /^([0-9.]+)(\w*)$/.exec(String(text));
  return Math.round(Number(number) * (unit === 'm' ? 0.001 : (UNITS[unit] ?? 1)));
};

/** The field of a pod that the downward API names. `pod` has name, uid, ip, namespace, labels and annotations. */
export function fieldOf(pod, path) {
  const known = {
    'metadata.name': pod.name, 'metadata.namespace': pod.namespace, 'metadata.uid': pod.uid, 'status.podIP': pod.ip,
    'status.podIPs': pod.ip, 'status.hostIP': pod.nodeIp, 'spec.nodeName': 'podman', 'spec.serviceAccountName': pod.template.spec.serviceAccountName ?? 'default',
  };
  const [, kind, key] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? [];
  const value = kind ? (pod.template.metadata[kind]?.[key] ?? '') : known[path];
  if (value === undefined) throw new Error(`the field ${path} of a pod is not known here`);
  return value;
}

/** The environment of a container, in the order Kubernetes reads it. `find(kind, name)` gives an object. */
export function environment(container, pod, find) {
  const env = {};
  const object = (kind, { name, optional }) => {
    const found = find(kind, name);
    if (!found && !optional) throw new Error(`${pod.name} wants the ${kind} ${name}, which is not there`);
    return found;
  };
  for (const { configMapRef, secretRef, prefix = '' } of container.envFrom ?? []) {
    const from = configMapRef ? object('ConfigMap', configMapRef) : object('Secret', secretRef);
    for (const key of from ? keysOf(from) : []) env[`${prefix}${key}`] = valueOf(from, key).toString();
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    const one = (kind, ref) => {
      const from = object(kind, ref);
      return from && valueOf(from, ref.key)?.toString();
    };
    const found = {
      fieldRef: (ref) => fieldOf(pod, ref.fieldPath),
      configMapKeyRef: (ref) => one('ConfigMap', ref),
      secretKeyRef: (ref) => one('Secret', ref),
      resourceFieldRef: ({ resource, divisor = '1' }) => {
        const [kind, what] = resource.split('.');
        return String(Math.ceil(quantity(container.resources?.[kind]?.[what] ?? 0) / (quantity(divisor) || 1)));
      },
    };
    const [[how, ref]] = Object.entries(valueFrom ?? { value });
    const text = how === 'value' ? expand(ref ?? '', env) : found[how](ref);
    if (text !== undefined) env[name] = text;
  }
  return env;
}

/** `$(NAME)` becomes the variable's value; of a name nobody knows it stays, and `$$` is one `$`. */
export const expand = (text, env) => text.replaceAll(/\$\$|\$\(([^)]+)\)/g, (whole, name) => (whole === '$$' ? '$' : (env[name] ?? whole)));

/** Containers in the order of their start; those that have to end, or to be started, before the others come first. */
export const containersOf = ({ spec }) => [
  ...(spec.initContainers ?? []).map((container) => ({ ...container, init: container.restartPolicy !== 'Always' })),
  ...spec.containers,
];

/** The number a port has, given by name or number, in any of these containers. */
export function portOf(template, port) {
  if (typeof port === 'number' || /^\d+$/.test(port)) return Number(port);
  const ports = containersOf(template).flatMap(({ ports: named = [] }) => named);
  return ports.find(({ name }) => name === port)?.containerPort;
}

/**
 * Arguments for podman: `pod` for `podman pod create`, `containers` for a `podman create` each. `volumes` are by name, `image(name)` says
 * what stands for an image here.
 */
export function podmanArguments(pod, { find, volumes, image, network, dns }) {
  const { template, id } = pod;
  const containers = containersOf(template).map((container) => {
    const env = environment(container, pod, find);
    const security = { ...template.spec.securityContext, ...container.securityContext };
    const { runAsUser, runAsGroup = runAsUser, runAsNonRoot, readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities = {} } = security;
    if (runAsNonRoot && runAsUser === 0) throw new Error(`${pod.name} says runAsNonRoot and runAsUser 0`);
    const memory = container.resources?.limits?.memory;
    const [program, ...rest] = (container.command ?? []).map((part) => expand(part, env));
    const args = (container.args ?? []).map((part) => expand(part, env));
    return [
      '--pod', id, '--name', `${id}-${container.name}`, '--pull', 'never', '--log-driver', 'k8s-file',
      ...(runAsUser === undefined ? [] : ['--user', `${runAsUser}:${runAsGroup}`]),
      ...(template.spec.securityContext?.fsGroup === undefined ? [] : ['--group-add', String(template.spec.securityContext.fsGroup)]),
      ...(readOnlyRootFilesystem ? ['--read-only', '--read-only-tmpfs=false'] : []),
      ...(allowPrivilegeEscalation === false ? ['--security-opt', 'no-new-privileges'] : []),
      ...(capabilities.drop ?? []).flatMap((name) => ['--cap-drop', name]),
      ...(capabilities.add ?? []).flatMap((name) => ['--cap-add', name]),
      ...(memory ? ['--memory', String(quantity(memory)), '--memory-swap', String(quantity(memory))] : []),
      ...(container.workingDir ? ['--workdir', container.workingDir] : []),
      ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...(container.volumeMounts ?? []).flatMap(({ name, mountPath, readOnly = false, subPath, subPathExpr }) => {
        const within = subPathExpr ? expand(subPathExpr, env) : subPath;
        const { folder } = volumes.get(name);
        return ['--volume', `${within ? `${folder}/${within}` : folder}:${mountPath}${readOnly ? ':ro' : ''}`];
      }),
      ...(program === undefined ? [] : ['--entrypoint', JSON.stringify([program])]),
      image(container.image), ...rest, ...args,
    ];
  });
  const resolverOptions = ({ options = [] } = {}) => options.flatMap(({ name, value }) => ['--dns-option', value === undefined ? name : `${name}:${value}`]);
  const names = dns && [...[dns.server].flatMap((server) => ['--dns', server]), ...dns.searches.flatMap((name) => ['--dns-search', name]), '--dns-option', 'ndots:5', ...resolverOptions(template.spec.dnsConfig)];
  return { pod: ['--name', id, '--hostname', pod.name, '--network', network, '--ip', pod.ip, '--exit-policy', 'continue', ...(names ?? [])], containers };
}

/** How many pods may be there beyond those wanted, and how many may be missing, while a Deployment is rolled. */
export function rollingBounds({ replicas = 1, strategy = {} }) {
  if (strategy.type === 'Recreate') return { surge: 0, missing: replicas };
  const { maxSurge = '25%', maxUnavailable = '25%' } = strategy.rollingUpdate ?? {};
  return { surge: amount(maxSurge, replicas), missing: amount(maxUnavailable, replicas, Math.floor) };
}
