// What a network plugin and kube-proxy do, as rules of nftables in the network namespace of each pod: NetworkPolicies decide
// what comes in and goes out, and the address of a Service leads to one of its pods. A table is replaced in one step;
// connections that stand go on.
import { portOf } from './pod-spec.mjs';
import { selects } from './manifests.mjs';

const TABLE = 'inet vestibule';
const list = (values) => `{ ${[...new Set(values)].join(', ')} }`;
const isV4 = (cidr) => !cidr.includes(':');

/** Peers of a rule that are pods: those of the policy's own namespace unless it names others. */
function podsOf({ podSelector, namespaceSelector }, namespace, { pods, labelsOf }) {
  return pods.filter((pod) => {
    const there = namespaceSelector ? selects(namespaceSelector, labelsOf(pod.namespace)) : pod.namespace === namespace;
    return there && pod.ip && selects(podSelector ?? {}, pod.labels);
  });
}

/** Rules of one direction of one policy. `field` is saddr or daddr; `portAt(pod, port)` the number of a port. */
function rulesOf(rule, direction, own, world) {
  const [peers, field] = direction === 'ingress' ? [rule.from, 'saddr'] : [rule.to, 'daddr'];
  const blocks = (peers ?? []).flatMap(({ ipBlock }) => (ipBlock && isV4(ipBlock.cidr) ? [ipBlock] : []));
  const pods = peers ? peers.filter(({ ipBlock }) => !ipBlock).flatMap((peer) => podsOf(peer, own.namespace, world)) : undefined;
  const ports = (portAt) => {
    if (!rule.ports) return [''];
    return rule.ports.flatMap(({ protocol = 'TCP', port, endPort }) => {
      const number = port === undefined ? undefined : portAt(port);
      if (port !== undefined && number === undefined) return []; // no such port at this pod
      return number === undefined ? [` meta l4proto ${protocol.toLowerCase()}`] : [` ${protocol.toLowerCase()} dport ${endPort ? `${number}-${endPort}` : number}`];
    });
  };
  const ownPort = (port) => portOf(own.template, port);
  const lines = [];
  if (!peers) for (const port of ports(ownPort)) lines.push(`${port} accept`);
  for (const { cidr, except = [] } of blocks) {
    const but = except.filter(isV4);
    for (const port of ports(direction === 'ingress' ? ownPort : Number)) lines.push(`ip ${field} ${cidr}${but.length > 0 ? ` ip ${field} != ${list(but)}` : ''}${port} accept`);
  }
  if (pods) for (const pod of pods) {
    for (const port of ports(direction === 'ingress' ? ownPort : (named) => portOf(pod.template, named))) lines.push(`ip ${field} ${pod.ip}${port} accept`);
  }
  return lines;
}

const typesOf = ({ policyTypes, egress }) => policyTypes ?? (egress ? ['Ingress', 'Egress'] : ['Ingress']);

/**
 * The table of one pod.
 * @param {{policies: object[], services: object[], pods: object[], labelsOf: (namespace: string) => object, node: string, trusted: string[]}} world
 *   `services` are {address, ports: [{port, protocol, targets: [{ip, port}]}]}; `trusted` addresses act for the node
 */
export function tableOf(pod, world) {
  const policies = world.policies.filter(({ metadata, spec }) => metadata.namespace === pod.namespace && selects(spec.podSelector, pod.labels));
  const chain = (direction) => {
    const type = direction === 'ingress' ? 'Ingress' : 'Egress';
    const closing = policies.filter(({ spec }) => typesOf(spec).includes(type));
    if (closing.length === 0) return [];
    return [
      ...closing.flatMap(({ spec }) => (spec[direction] ?? []).flatMap((rule) => rulesOf(rule, direction, pod, world))),
      'counter drop',
    ];
  };
  return [
    `table ${TABLE} {}`, `delete table ${TABLE}`, `table ${TABLE} {`,
    ...servicesOf(world.services),
    '  chain incoming {', '    type filter hook input priority 0; policy accept;',
    '    ct state established,related accept', '    iifname "lo" accept', `    ip saddr ${list([world.node, ...world.trusted])} accept`,
    ...chain('ingress').map((line) => `    ${line}`), '  }',
    '  chain outgoing {', '    type filter hook output priority 0; policy accept;',
    '    ct state established,related accept', '    oifname "lo" accept',
    ...chain('egress').map((line) => `    ${line}`), '  }', '}', '',
  ].join('\n');
}

/** One connection after another to a pod chosen by chance, as kube-proxy does it; refused where there is none. */
function servicesOf(services) {
  const lines = { to: [], none: [] };
  for (const { address, ports } of services) {
    for (const { port, protocol = 'tcp', targets } of ports) {
      const match = `ip daddr ${address} ${protocol} dport ${port}`;
      const map = targets.map(({ ip, port: at }, number) => `${number} : ${ip} . ${at}`).join(', ');
      if (targets.length > 0) lines.to.push(`    ${match} dnat ip to numgen random mod ${targets.length} map { ${map} }`);
      else lines.none.push(`    ${match} reject with tcp reset`);
    }
  }
  return [
    '  chain services {', '    type nat hook output priority -100; policy accept;', ...lines.to, '  }',
    '  chain nobody {', '    type filter hook output priority -150; policy accept;', ...lines.none, '  }',
  ];
}

/**
 * The table of the clients' namespace. `ports` maps a port of its loopback to a Service's, as `kubectl port-forward` does: but
 * to any of the Service's pods, by the Service's own rules.
 */
export function clientTable(services, ports) {
  const forwards = ports.map(({ port, namespace, service, servicePort }) => ({
    address: '127.0.0.1', ports: [{ port, targets: services.find((one) => one.name === service && one.namespace === namespace).ports.find((at) => at.port === servicePort).targets }],
  }));
  return [
    `table ${TABLE} {}`, `delete table ${TABLE}`, `table ${TABLE} {`, ...servicesOf([...services, ...forwards]),
    '  chain leaving {', '    type nat hook postrouting priority 100; policy accept;', '    ip saddr 127.0.0.0/8 oifname != "lo" masquerade', '  }', '}', '',
  ].join('\n');
}

/** Rules that drop whatever goes between this pod and `others`, in a table of their own. */
export const cutTable = (others) => [
  'table inet cut {}', 'delete table inet cut', 'table inet cut {',
  '  chain incoming {', '    type filter hook input priority 10; policy accept;', ...others.map((ip) => `    ip saddr ${ip} drop`), '  }',
  '  chain outgoing {', '    type filter hook output priority 10; policy accept;', ...others.map((ip) => `    ip daddr ${ip} drop`), '  }', '}', '',
].join('\n');

/** Ports a Service has at one of its pods. */
export const targetOf = (pod, { targetPort, port }) => portOf(pod.template, targetPort ?? port);

