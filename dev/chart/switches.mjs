// Which value of the chart takes which component. The order is that in which an overlay would name them: of two that change the same
// field, the later one wins. `needs`: what a component changes, and so has to be there when the generator looks at what it does.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../stack.mjs';

/** What no installation is without: before the others, and after them. */
export const FIRST = 'mtls';
export const LAST = 'labels';

const WAYS_IN = ['ingress', 'gateway-api', 'forward-auth', 'ext-authz'];
const store = (kind) => `eq .Values.store.kind "${kind}"`;
const controller = (name) => ({ when: `eq .Values.controller.name "${name}"`, needs: WAYS_IN });

export const SWITCHES = {
  redis: { when: store('redis') },
  'redis-external': { when: store('redis-external') },
  'redis-cluster': { when: store('redis-cluster') },
  'cert-manager': { when: '.Values.certManager.enabled' },
  'cert-manager-redis': { when: `and .Values.certManager.enabled (${store('redis')})`, needs: ['redis', 'cert-manager'] },
  ingress: { when: '.Values.ingress.enabled' },
  'gateway-api': { when: '.Values.gatewayApi.enabled' },
  'gateway-api/backend-tls': { when: '.Values.gatewayApi.backendTls.enabled', needs: ['cert-manager', 'gateway-api'] },
  'forward-auth': { when: '.Values.forwardAuth.enabled' },
  'ext-authz': { when: '.Values.extAuthz.enabled' },
  'gateway-api/external-auth': { when: '.Values.gatewayApi.externalAuth.enabled', needs: ['ext-authz'] },
  'controllers/contour': controller('contour'),
  'controllers/envoy-gateway': controller('envoy-gateway'),
  'controllers/haproxy': controller('haproxy'),
  'controllers/ingress-nginx': controller('ingress-nginx'),
  'controllers/istio': controller('istio'),
  'controllers/nginx': controller('nginx'),
  'controllers/traefik': controller('traefik'),
  autoscaling: { when: '.Values.autoscaling.enabled' },
  operator: { when: '.Values.operator.enabled' },
  'session-callers': { when: '.Values.sessionCallers.enabled', needs: ['cert-manager'] },
  'external-secrets': { when: '.Values.externalSecrets.enabled' },
  'external-secrets/redis': { when: `and .Values.externalSecrets.enabled (${store('redis')})`, needs: ['redis', 'external-secrets'] },
  'external-secrets/operator': { when: 'and .Values.externalSecrets.enabled .Values.operator.enabled', needs: ['operator', 'external-secrets'] },
  monitoring: { when: '.Values.monitoring.enabled' },
  otel: { when: '.Values.otel.enabled' },
  ipv6: { when: '.Values.ipv6.enabled' },
  'dev-idp': { when: '.Values.devIdp.enabled' },
  providers: { when: '.Values.providers.enabled' },
  openshift: { when: '.Values.openshift.enabled', needs: ['redis', 'operator'] },
  'forward-proxy': { when: '.Values.forwardProxy.enabled' },
};

/** The components of the folder that no switch takes. */
export function withoutSwitch() {
  const folder = join(ROOT, 'k8s/components');
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('/kustomization.yaml'));
  const components = files.filter((name) => readFileSync(join(folder, name), 'utf8').includes('kind: Component')).map((name) => name.replace('/kustomization.yaml', ''));
  return components.filter((name) => ![FIRST, LAST].includes(name) && !(name in SWITCHES));
}
