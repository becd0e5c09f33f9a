// Runs the manifests of an overlay as podman pods on one network. Services are aliases of its name server. Two ports
// of this machine lead to edge and provider. NetworkPolicies are not applied: dev/tests/kubernetes checks them.
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Problem } from '../build.mjs';
import { finder, render } from './manifests.mjs';
import { Pod, podman } from './pod.mjs';

const PREFIX = 'vestibule-pods';
const FIRST_ADDRESS = 10;
const WORKLOADS = ['Deployment', 'StatefulSet'];

/** Accepts connections on a port of loopback and passes each to one of `targets()` in turn. */
async function forward(port, targets) {
  let turn = 0;
  const server = net.createServer((client) => {
    const { host, port: to } = targets()[turn++ % targets().length];
    const upstream = net.connect(to, host);
    for (const [one, other] of [[client, upstream], [upstream, client]]) one.on('error', () => other.destroy()).on('close', () => other.destroy()).pipe(other);
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return server;
}

export class Cluster {
  /** `overlay` is a kustomize folder; `image(name)` maps an image of the manifests to a local image. */
  constructor({ overlay, image }) {
    Object.assign(this, { image, objects: render(overlay), prefix: `${PREFIX}-${process.pid}`, workloads: new Map(), forwards: [], number: 0 });
  }

  /** Creates the network and starts all workloads. Returns once all pods are ready. */
  async start() {
    if (process.getuid?.() !== 0) throw new Problem('pods need root: their addresses are reached from this machine');
    await this.#removeLeftovers();
    this.folder = mkdtempSync(join(tmpdir(), `${this.prefix}-`));
    mkdirSync(join(this.folder, 'claims'));
    this.network = this.prefix;
    await podman('network', 'create', this.network);
    this.subnet = (await podman('network', 'inspect', '--format', '{{range .Subnets}}{{.Subnet}}{{end}}', this.network)).replace(/\d+\/\d+$/, '');
    for (const object of this.objects.filter(({ kind }) => WORKLOADS.includes(kind))) {
      const names = Array.from({ length: object.spec.replicas }, (_, at) => `${object.metadata.name}-${at}`);
      this.workloads.set(object.metadata.name, { object, pods: names.map((name) => this.#newPod(object, name)) });
    }
    for (const { pods } of this.workloads.values()) for (const pod of pods) await pod.start();
    for (const { pods } of this.workloads.values()) for (const pod of pods) await pod.ready();
  }

  #newPod({ metadata: { namespace }, spec: { template, volumeClaimTemplates = [] } }, name) {
    this.number += 1;
    const { labels } = template.metadata;
    const services = this.objects.filter(({ kind, metadata, spec }) => kind === 'Service' && metadata.namespace === namespace && Object.entries(spec.selector).every(([key, value]) => labels[key] === value));
    const aliases = services.flatMap(({ metadata: { name: service } }) => [service, `${name}.${service}`, `${service}.${namespace}`]);
    const ip = `${this.subnet}${FIRST_ADDRESS + this.number}`;
    return new Pod(this, { name, template, aliases, ip, number: this.number, claims: volumeClaimTemplates.map(({ metadata }) => metadata.name), find: finder(this.objects, namespace) });
  }

  podsOf(name) {
    return this.workloads.get(name).pods;
  }

  get pods() {
    return [...this.workloads.values()].flatMap(({ pods }) => pods);
  }

  /** Replaces a pod as a Deployment's rollout does: the new one is ready first. Returns the old pod's exit codes. */
  async replace(name, old) {
    const workload = this.workloads.get(name);
    const fresh = this.#newPod(workload.object, old.name);
    await fresh.start();
    await fresh.ready();
    workload.pods = [...workload.pods.filter((pod) => pod !== old), fresh];
    return old.delete();
  }

  /** Deletes a StatefulSet's pod and restarts it with its volumes and a new address. Returns the old exit codes. */
  async recreate(name, old) {
    const workload = this.workloads.get(name);
    const codes = await old.delete();
    const fresh = this.#newPod(workload.object, old.name);
    workload.pods = workload.pods.map((pod) => (pod === old ? fresh : pod));
    await fresh.start();
    await fresh.ready();
    return codes;
  }

  /** Forwards a port of loopback to the pods of a workload. */
  async forward(port, name) {
    this.forwards.push(await forward(port, () => this.podsOf(name).map(({ ip }) => ({ host: ip, port }))));
  }

  /** Removes the pods of runs that were killed. */
  async #removeLeftovers() {
    const isOver = (name) => {
      try { process.kill(Number(name.slice(PREFIX.length + 1).split('-')[0]), 0); } catch { return true; }
      return false;
    };
    const over = (names) => names.split('\n').filter((name) => name.startsWith(`${PREFIX}-`) && isOver(name));
    for (const name of over(await podman('pod', 'ps', '--format', '{{.Name}}'))) await podman('pod', 'rm', '--force', '--time', '0', name);
    for (const name of over(await podman('network', 'ls', '--format', '{{.Name}}'))) await podman('network', 'rm', '--force', name);
    for (const name of over(readdirSync(tmpdir()).join('\n'))) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }

  /** Removes everything that was started. */
  async close() {
    for (const server of this.forwards) server.close();
    const names = (await podman('pod', 'ps', '--format', '{{.Name}}')).split('\n').filter((name) => name.startsWith(`${this.prefix}-`));
    if (names.length > 0) await podman('pod', 'rm', '--force', '--time', '0', ...names);
    if (this.network) await podman('network', 'rm', '--force', this.network);
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }
}
