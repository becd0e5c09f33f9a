// The product on the cluster of kubectl (kind, k3d, minikube). Makes the secrets of k8s/overlays/dev, applies it,
// waits, and forwards the two ports that a browser needs until Ctrl-C. `make images` makes the images; load them with
// the cluster's command (`kind load docker-image …`, `k3d image import …`, `minikube image load …`).
//
//   node dev/cluster.mjs             does all this
//   node dev/cluster.mjs --render    prints the manifests, secrets included, and touches no cluster
//   node dev/cluster.mjs --secrets   only makes missing secrets
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';

import { ACCOUNTS } from './idp/lib/accounts.mjs';
import { endOnErrors } from './lib/build.mjs';
import { writeSecrets } from './lib/cluster-secrets.mjs';

const OVERLAY = fileURLToPath(new URL('../k8s/overlays/dev', import.meta.url));
const WAIT = '300s'; // the cluster may have to fetch images
const WORKLOADS = [
  ['localhost', 'deployment/dev-idp'],
  ...['statefulset/redis-sentinel', 'statefulset/redis', 'deployment/session-svc', 'deployment/web', 'deployment/edge', 'deployment/operator'].map((name) => ['vestibule-dev', name]),
];
const FORWARDED = [['localhost', 'service/dev-idp', '9000'], ['vestibule-dev', 'service/edge', '3000']];

const { values } = parseArgs({ options: { render: { type: 'boolean', default: false }, secrets: { type: 'boolean', default: false } } });
const kubectl = (...args) => execFileSync('kubectl', args, { stdio: 'inherit' });
const say = (text) => process.stdout.write(`${text}\n`);

function forward() {
  const children = FORWARDED.map(([namespace, target, port]) => spawn('kubectl', ['-n', namespace, 'port-forward', target, port], { stdio: ['ignore', 'ignore', 'inherit'] }));
  const stop = () => children.forEach((child) => child.kill());
  process.on('SIGINT', stop).on('SIGTERM', stop);
  for (const child of children) child.on('exit', stop);
  say('\nopen http://127.0.0.1:3000 (Ctrl-C ends the forwarding, not the product)');
  for (const { email, password } of ACCOUNTS) say(`  ${email} / ${password}`);
}

endOnErrors();
writeSecrets(join(OVERLAY, 'secrets'));
if (values.render) kubectl('kustomize', OVERLAY);
else if (!values.secrets) {
  kubectl('apply', '-k', OVERLAY);
  for (const [namespace, name] of WORKLOADS) kubectl('-n', namespace, 'rollout', 'status', name, `--timeout=${WAIT}`);
  forward();
}
