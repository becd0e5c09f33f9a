// The whole product as pods, and people in it: what events happen to.
import { cpSync } from 'node:fs';
import { join } from 'node:path';

import { ACCOUNTS } from '../../idp/lib/accounts.mjs';
import { ROOT } from '../../stack.mjs';
import { Problem } from '../build.mjs';
import { writeSecrets } from '../cluster-secrets.mjs';
import { Clients } from './client-pod.mjs';
import { Cluster } from './cluster.mjs';
import { imageOf, imagesBy } from './images.mjs';
import { render } from './manifests.mjs';
import { missingParts } from './podman.mjs';

const OVERLAY = join(ROOT, 'k8s/overlays/dev');
const PEOPLE = 24; // who stay signed in

/** Ports of the clients' loopback, as dev/cluster.mjs forwards them. */
const FORWARDS = [
  { port: 3000, namespace: 'vestibule-dev', service: 'edge', servicePort: 3000 },
  { port: 9000, namespace: 'localhost', service: 'dev-idp', servicePort: 9000 },
];

const settingOf = (objects, name, key) => objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.startsWith(name))?.data[key];

/**
 * Starts everything, and ends all of it again where that fails.
 * @param {{tag: string, previousTag?: string, rate?: number, seconds?: number, say: (text: string) => void, note?: (text: string) => void}} options
 */
export async function openWorld({ tag, previousTag, rate = 300, seconds = 10, say, note = () => {} }) {
  const missing = missingParts();
  if (missing.length > 0) throw new Problem(`Pods cannot run here. What is missing:\n  ${missing.join('\n  ')}`);
  writeSecrets(join(OVERLAY, 'secrets'));
  const objects = await render(OVERLAY);
  const cluster = new Cluster({ objects, image: imagesBy(tag), onNote: note });
  let clients;
  const close = async () => {
    for (const [signal, stop] of stops) process.off(signal, stop);
    clients?.close();
    await cluster.close();
  };
  const stops = Object.entries({ SIGINT: 130, SIGTERM: 143 }).map(([signal, code]) => [signal, async () => {
    say('removing what was started');
    await close();
    process.exit(code);
  }]);
  for (const [signal, stop] of stops) process.on(signal, stop);
  try {
    await cluster.open();
    say('starting the pods');
    await cluster.start();
    await cluster.forward(FORWARDS);
    clients = new Clients(cluster);
    const secrets = join(cluster.folder, 'secrets');
    cpSync(join(OVERLAY, 'secrets'), secrets, { recursive: true });
    const edgeUrl = settingOf(objects, 'edge-settings', 'EDGE_BASE_URL');
    const issuer = settingOf(objects, 'provider-settings', 'OIDC_ISSUER_URL');
    const accounts = ACCOUNTS.map(({ name, email, password }) => ({ name, email, password }));
    const world = {
      cluster, clients, edgeUrl, issuer, accounts, secrets, rate, seconds, say, close, ended: [],
      imageOf: (name, version) => imageOf(name, version === 'previous' ? previousTag : tag),
    };
    world.cookies = await clients.ask('signIn', { edgeUrl, accounts, count: PEOPLE });
    return world;
  } catch (error) {
    const folder = await cluster.keepEverythingWritten();
    await close();
    if (folder) error.message += `\nWhat the containers wrote: ${folder}`;
    throw error;
  }
}

/** A real browser signs in; gives what stands on the page it comes to. */
export const browse = ({ clients, edgeUrl, issuer, accounts }) => clients.ask('browse', { edgeUrl, issuer, account: accounts[0] });
