// Where a value of the chart takes the place of what kustomize says. Every rule has to lead somewhere: one that fits no manifest is told.
// A place is an object and a path in it; parts of lists are named by their `name`, or by their number.
import { NAMESPACE } from './rendered.mjs';

const POLICY = 'NetworkPolicy';
const PROXIES = /^NetworkPolicy\/edge-from-(ingress|gateway|checks|ext-authz)$/;
const AFFINITY = 'spec.template.spec.affinity';
const OF_ISSUER = /^Certificate\/(?!vestibule-authority$)/;
/** Workloads that an installation extends, and their values. */
const EXTENSIBLE = [['edge', 'edge'], ['session-svc', 'sessionService'], ['web', 'web']];
const SETTINGS = (name) => `ConfigMap/${name}-settings`;
const RESOURCES = (kind, name, container = name) => ({ object: `${kind}/${name}`, path: `spec.template.spec.containers[${container}].resources` });
const IMAGES = { 'vestibule-edge': 'edge', 'vestibule-session-svc': 'sessionService', 'vestibule-web': 'web', redis: 'redis', 'vestibule-dev-idp': 'devIdp' };
const FIRST_PEERS = (direction, key) => `spec.${direction}[0].${key}`;

/** One value, as it is or as a string. */
const plain = (value) => ({ beside: [`{{ .Values.${value} }}`] });
const quoted = (value) => ({ beside: [`{{ .Values.${value} | quote }}`] });
/** A value that is a map or a list. */
const block = (value) => ({ under: [`{{- toYaml .Values.${value} | nindent INDENT }}`] });
const text = (expression) => ({ beside: ['|', `{{- ${expression} | nindent INDENT }}`] });
/** A string with an expression in the place of a part. */
const within = (part, expression) => (value) => ({ beside: [JSON.stringify(value).replaceAll(part, `{{ ${expression} }}`)] });

const autoscaler = (name, key) => [
  { object: `HorizontalPodAutoscaler/${name}`, path: 'spec.minReplicas', print: plain(`autoscaling.${key}.min`) },
  { object: `HorizontalPodAutoscaler/${name}`, path: 'spec.maxReplicas', print: plain(`autoscaling.${key}.max`) },
];

/** Parts of manifests: the first rule that fits decides. */
export const RULES = [
  { path: 'metadata.namespace', value: NAMESPACE, print: { beside: ['{{ .Release.Namespace }}'] } },
  { path: /labels\.app\.kubernetes\.io\/instance$/, print: { beside: ['{{ .Release.Name }}'] } },
  { path: /labels\.app\.kubernetes\.io\/managed-by$/, print: { beside: ['{{ .Release.Service }}'] } },
  { path: /labels\.app\.kubernetes\.io\/version$/, print: { beside: ['{{ .Chart.AppVersion | quote }}'] } },
  { path: /\.image$/, print: (value) => ({ beside: [`{{ include "vestibule.image" (list $ "${IMAGES[value]}") }}`] }) },
  { path: /\.imagePullPolicy$/, print: plain('images.pullPolicy') },
  { value: /^config:/, print: (value) => ({ beside: [`{{ include "vestibule.config-name" (list $ "${value.slice('config:'.length)}") }}`] }) },

  { object: 'Deployment/web', path: 'spec.replicas', print: plain('web.replicas') },
  { ...RESOURCES('Deployment', 'edge'), print: block('edge.resources') },
  { ...RESOURCES('Deployment', 'session-svc'), print: block('sessionService.resources') },
  { ...RESOURCES('Deployment', 'web'), print: block('web.resources') },
  { ...RESOURCES('StatefulSet', 'redis'), print: block('redis.resources') },
  ...autoscaler('edge', 'edge'),
  ...autoscaler('session-svc', 'sessionService'),
  { object: /^HorizontalPodAutoscaler\//, path: /averageUtilization$/, print: plain('autoscaling.cpu') },

  { object: SETTINGS('edge'), path: 'data.EDGE_BASE_URL', print: quoted('baseUrl') },
  { object: SETTINGS('edge'), path: 'data.EDGE_TRUSTED_PROXIES', print: { beside: ['{{ join "," .Values.trustedProxies | quote }}'] } },
  { object: SETTINGS('provider'), path: 'data.OIDC_ISSUER_URL', component: '', print: quoted('provider.issuerUrl') },
  { object: SETTINGS('provider'), path: 'data.OIDC_CLIENT_ID', component: '', print: quoted('provider.clientId') },
  { object: SETTINGS('provider'), path: 'data.HTTPS_PROXY', print: quoted('forwardProxy.url') },
  { object: SETTINGS('provider'), path: 'data.NO_PROXY', print: { beside: ['{{ join "," .Values.forwardProxy.noProxy | quote }}'] } },
  { path: 'data.OTEL_EXPORTER_OTLP_ENDPOINT', print: quoted('otel.endpoint') },
  { object: 'ConfigMap/edge-routes', path: 'data.routes.toml', file: true, print: text('.Values.edge.routes | default (.Files.Get FILE)') },
  { object: 'ConfigMap/providers', path: 'data.providers.toml', print: text('.Values.providers.file') },
  { object: 'ConfigMap/redis-for-check-store', path: 'data.OPERATOR_SERVER_MEMORY', print: quoted('redis.resources.limits.memory') },
  // Elsewhere the name of nothing: one that was kept from before is of another store.
  { object: 'CronJob/check-store', value: 'redis-for-check-store', print: { beside: ['{{ if eq .Values.store.kind "redis" }}{{ include "vestibule.config-name" (list $ "redis-for-check-store") }}{{ else }}redis-for-check-store{{ end }}'] } },
  { object: 'ConfigMap/redis-settings', path: 'data.redis.conf', file: true, has: 'maxmemory 192mb\n', print: text('.Files.Get FILE | replace "maxmemory 192mb" (printf "maxmemory %s" .Values.redis.maxmemory)') },
  { object: /^ConfigMap\//, path: /^data\./, value: /\n/, file: true, print: text('.Files.Get FILE') },

  { object: `${POLICY}/allow-provider`, path: FIRST_PEERS('egress', 'to'), component: '', print: block('provider.peers') },
  { object: `${POLICY}/allow-provider`, path: FIRST_PEERS('egress', 'ports[0].port'), component: '', print: plain('provider.port') },
  { object: `${POLICY}/allow-provider`, path: FIRST_PEERS('egress', 'to'), component: 'forward-proxy', print: block('forwardProxy.peers') },
  { object: `${POLICY}/allow-provider`, path: FIRST_PEERS('egress', 'ports[0].port'), component: 'forward-proxy', print: plain('forwardProxy.port') },
  ...['redis-external', 'redis-cluster'].map((component) => ({
    object: `${POLICY}/store-clients`,
    path: 'spec.egress',
    component,
    print: { under: ['{{- include "vestibule.store-egress" . | trim | nindent INDENT }}'] },
  })),
  { object: `${POLICY}/allow-metrics`, path: FIRST_PEERS('ingress', 'from'), print: block('monitoring.peers') },
  { object: `${POLICY}/allow-traces`, path: FIRST_PEERS('egress', 'to'), print: block('otel.peers') },
  { object: `${POLICY}/allow-traces`, path: FIRST_PEERS('egress', 'ports[0].port'), print: plain('otel.port') },
  { object: /^NetworkPolicy\//, path: /egress\[\d\]\.to$/, json: /"k8s-app":"kube-dns"/, print: block('dns.peers') },
  { object: /^NetworkPolicy\//, path: /egress\[\d\]\.ports\[\d\]\.port$/, value: 53, print: plain('dns.port') },
  { object: PROXIES, path: /namespaceSelector\.matchLabels\.kubernetes\.io\/metadata\.name$/, component: 'controllers/istio', print: quoted('gatewayApi.gateway.namespace') },
  { object: PROXIES, path: /gateway\.networking\.k8s\.io\/gateway-name$/, component: 'controllers/istio', print: quoted('gatewayApi.gateway.name') },

  { value: 'app.example.com', print: { beside: ['{{ include "vestibule.host" . }}'] } },
  { object: 'Ingress/edge', path: 'spec.tls[0].secretName', print: quoted('ingress.tlsSecret') },
  { object: /^HTTPRoute\//, path: /parentRefs\[public\]\.name$/, print: quoted('gatewayApi.gateway.name') },
  { object: /^HTTPRoute\//, path: /parentRefs\[public\]\.namespace$/, print: quoted('gatewayApi.gateway.namespace') },
  { object: 'HTTPRoute/edge', path: /parentRefs\[public\]\.sectionName$/, print: quoted('gatewayApi.gateway.httpsListener') },
  { object: 'HTTPRoute/edge-to-https', path: /parentRefs\[public\]\.sectionName$/, print: quoted('gatewayApi.gateway.httpListener') },
  {
    object: 'ReferenceGrant/edge-external-auth',
    path: 'spec.from',
    print: {
      under: [
        '{{- range .Values.gatewayApi.externalAuth.namespaces }}',
        '- {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: {{ . }}}',
        '- {group: gateway.envoyproxy.io, kind: SecurityPolicy, namespace: {{ . }}}',
        '{{- end }}',
      ],
    },
  },

  { object: OF_ISSUER, path: 'spec.issuerRef', print: block('certManager.issuerRef') },
  { object: 'Certificate/session-svc-tls', path: /dnsNames/, value: /\.vestibule\.svc/, print: within('.vestibule.svc', 'printf ".%s.svc" $.Release.Namespace') },
  { object: /^ExternalSecret\//, path: 'spec.secretStoreRef.name', print: quoted('externalSecrets.store.name') },
  { object: /^ExternalSecret\//, path: 'spec.secretStoreRef.kind', print: quoted('externalSecrets.store.kind') },
  { object: /^ExternalSecret\//, path: 'spec.refreshInterval', print: quoted('externalSecrets.refreshInterval') },
  { object: /^ExternalSecret\//, path: /remoteRef\.key$/, print: within('vestibule/', '.Values.externalSecrets.prefix') },
  { object: 'StatefulSet/redis', path: /volumeClaimTemplates\[0\]\.spec\.resources\.requests\.storage$/, print: quoted('redis.storage') },
  { object: 'CronJob/check-store', path: 'spec.schedule', print: quoted('operator.checkStore.schedule') },
  { object: /\/localhost-dev-idp$/, value: 'vestibule-dev', print: { beside: ['{{ .Release.Namespace }}'] } },
  { object: /\/localhost-dev-idp$/, value: /\.vestibule-dev\./, print: within('.vestibule-dev.', 'printf ".%s." $.Release.Namespace') },
  { object: /\/localhost-dev-idp$/, value: /http:\/\/127\.0\.0\.1:3000/, print: within('http://127.0.0.1:3000', '.Values.baseUrl') },
];

/** Places that are printed as a whole, whatever component fills them; `define` keeps what the components say as a template of its own. */
export const WHOLES = [
  ...[['edge', 'edge'], ['session-svc', 'sessionService']].map(([name, key]) => ({
    object: `Deployment/${name}`,
    path: 'spec.replicas',
    lines: [`replicas: {{ include "vestibule.replicas" (list $ "${name}" .Values.${key}.replicas .Values.autoscaling.${key}.min) }}`],
  })),
  {
    object: PROXIES,
    path: FIRST_PEERS('ingress', 'from'),
    define: 'vestibule.controller-peers',
    lines: ['from:', '  {{- if .Values.controller.peers }}', '  {{- toYaml .Values.controller.peers | nindent INDENT }}', '  {{- else }}', '  {{- include "vestibule.controller-peers" . | trim | nindent INDENT }}', '  {{- end }}'],
  },
  ...EXTENSIBLE.map(([name, key], index) => ({
    object: `Deployment/${name}`,
    path: 'spec.template.metadata.annotations',
    define: index === 0 ? 'vestibule.pod-annotations' : undefined,
    lines: [`{{- with merge (include "vestibule.pod-annotations" . | fromYaml) .Values.${key}.podAnnotations }}`, 'annotations:', '  {{- toYaml . | nindent INDENT }}', '{{- end }}'],
  })),
  ...EXTENSIBLE.map(([name, key]) => ({
    object: `Deployment/${name}`,
    path: AFFINITY,
    define: `vestibule.affinity.${name}`,
    lines: ['affinity:', `  {{- .Values.${key}.affinity | default (include "vestibule.affinity.${name}" . | fromYaml) | toYaml | nindent INDENT }}`],
  })),
  {
    object: 'Ingress/edge',
    path: 'spec.rules',
    define: 'vestibule.ingress-rules',
    lines: ['rules:', '  {{- range include "vestibule.hosts" . | fromYamlArray }}', '  {{- include "vestibule.ingress-rules" $ | replace (include "vestibule.host" $ | trim) . | nindent INDENT }}', '  {{- end }}'],
  },
  { object: 'Ingress/edge', path: 'spec.tls[0].hosts', lines: ['hosts:', '  {{- include "vestibule.hosts" . | nindent INDENT }}'] },
  { object: /^HTTPRoute\//, path: 'spec.hostnames', lines: ['hostnames:', '  {{- include "vestibule.hosts" . | nindent INDENT }}'] },
  {
    object: 'Ingress/edge',
    path: 'spec.ingressClassName',
    define: 'vestibule.controller-class',
    lines: ['ingressClassName: {{ .Values.ingress.className | default (include "vestibule.controller-class" . | trim) }}'],
  },
  {
    object: 'Ingress/edge',
    path: 'metadata.annotations',
    define: 'vestibule.controller-annotations',
    lines: ['{{- with merge (deepCopy .Values.ingress.annotations) (include "vestibule.controller-annotations" . | fromYaml) }}', 'annotations:', '  {{- toYaml . | nindent INDENT }}', '{{- end }}'],
  },
  { object: /^ConfigMap\//, path: 'data', lines: ['data:', '  {{- include "vestibule.data.NAME" . | nindent INDENT }}'] },
  { object: 'ConfigMap/session-svc-callers', path: 'data.callers.toml', file: true, lines: ['callers.toml: |', '  {{- include "vestibule.callers" (list . FILE) | nindent INDENT }}'] },
];

const listed = (value) => [`{{- with .Values.${value} }}`, '{{- toYaml . | nindent INDENT }}', '{{- end }}'];
const mapped = (value, name) => [`{{- with .Values.${value} }}`, `${name}:`, '  {{- toYaml . | nindent INDENT2 }}', '{{- end }}'];

/** What the chart adds at the end of a map or a list. */
export const ADDED = [
  ...EXTENSIBLE.flatMap(([name, key]) => [
    { object: `Deployment/${name}`, path: 'spec.template.metadata.labels', lines: listed(`${key}.podLabels`) },
    ...(name === 'web' ? [] : [
      { object: `Deployment/${name}`, path: 'spec.template.spec.volumes', lines: listed(`${key}.extraVolumes`) },
      { object: `Deployment/${name}`, path: `spec.template.spec.containers[${name}].volumeMounts`, lines: listed(`${key}.extraVolumeMounts`) },
    ]),
    { object: `ServiceAccount/${name}`, path: 'metadata', lines: mapped(`${key}.serviceAccount.annotations`, 'annotations') },
  ]),
  ...[['edge', 'edge'], ['session-svc', 'sessionService']].map(([name, key]) => ({ object: `HorizontalPodAutoscaler/${name}`, path: 'spec.metrics', lines: listed(`autoscaling.${key}.metrics`) })),
  { object: SETTINGS('edge'), path: 'data', lines: ['{{- with .Values.hosts }}', 'EDGE_HOSTS: {{ join "," . | quote }}', '{{- end }}'] },
  { path: /template\.spec$/, lines: ['{{- with .Values.pods }}', '{{- toYaml . | nindent INDENT }}', '{{- end }}'] },
  { path: 'metadata.labels', lines: ['helm.sh/chart: {{ include "vestibule.chart" . }}'] },
  { object: 'StatefulSet/redis', path: /volumeClaimTemplates\[0\]\.spec$/, lines: ['{{- with .Values.redis.storageClassName }}', 'storageClassName: {{ . }}', '{{- end }}'] },
  { object: 'StatefulSet/redis-sentinel', path: /volumeClaimTemplates\[0\]\.spec$/, lines: ['{{- with .Values.redis.storageClassName }}', 'storageClassName: {{ . }}', '{{- end }}'] },
];

const fits = (pattern, value) => pattern === undefined || (pattern instanceof RegExp ? typeof value === 'string' && pattern.test(value) : pattern === value);

/** The rules, as the printer asks for them; `keep` writes a file of the chart and gives its name. */
export function parameters(keep) {
  const used = new Set();
  const find = (rules, { object, path, component = '' }, part) =>
    rules.find((rule) => fits(rule.object, object) && fits(rule.path, path) && (rule.component === undefined || rule.component === component) && fits(rule.value, part?.scalar) && (!rule.json || rule.json.test(JSON.stringify(plainly(part)))));
  const file = (rule, { object, path }, contents) => {
    if (rule.has && !contents.includes(rule.has)) throw new Error(`${object} ${path} does not have: ${rule.has}`);
    return JSON.stringify(keep(`${object.replace('ConfigMap/', '')}/${path.replace('data.', '')}`, contents));
  };
  return {
    at(at, part) {
      const rule = find(RULES, at, part);
      if (!rule) return undefined;
      used.add(rule);
      const printed = typeof rule.print === 'function' ? rule.print(part.scalar) : rule.print;
      return rule.file ? { beside: printed.beside.map((line) => line.replace('FILE', () => file(rule, at, part.scalar))) } : printed;
    },
    whole(at, place) {
      const rule = find(WHOLES, at);
      if (!rule) return undefined;
      used.add(rule);
      const contents = () => file(rule, at, place.variants[0].node.scalar);
      return rule.lines.map((line) => line.replace('NAME', at.object.split('/')[1]).replace('FILE', contents));
    },
    after(at) {
      const rules = ADDED.filter((rule) => fits(rule.object, at.object) && fits(rule.path, at.path));
      rules.forEach((rule) => used.add(rule));
      return rules.flatMap(({ lines }) => lines);
    },
    unused: () => [...RULES, ...WHOLES, ...ADDED].filter((rule) => !used.has(rule)).map(({ object = 'any', path = '', value = '' }) => `${object} ${path} ${value}`),
  };
}

/** A node of a tree as it would be with every component's part. */
function plainly(part) {
  if (part?.map) return Object.fromEntries([...part.map].map(([key, place]) => [key, plainly(place.variants[0]?.node)]));
  if (part?.list) return part.list.map((place) => plainly(place.variants[0]?.node));
  return part?.scalar;
}
