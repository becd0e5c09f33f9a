// A small cluster of one node on podman: takes rendered manifests, and keeps pods, Services and policies as they say.
// What a scheduler, kubelet, kube-proxy, name server and network plugin do stands in the files beside this one.
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Problem } from '../build.mjs';
import { pause, until } from '../net.mjs';
import { startDns } from './dns.mjs';
import { ofKind, selects } from './manifests.mjs';
import { clientTable, cutTable, tableOf, targetOf } from './packet-filter.mjs';
import { command, missingParts, Podman } from './podman.mjs';
import { Deployment, StatefulSet } from './workload.mjs';

const PREFIX = 'vestibule-pods';
const LOOK_MS = 200; // between two looks of the controllers; the kubelet's own is a second, for hundreds of pods
const ENDPOINTS_LAG_MS = 500; // until a Service leads elsewhere: controller, API server and every node have to hear of it
const SETTLE_MS = 180_000;
const CRASHES = 3; // of one container in one pod
const SERVICE_NETWORK = '10.96.0.';
const DOMAIN = 'cluster.local';

export class Cluster {
  /** `objects` are rendered manifests; `image(name)` says what stands for an image here; `onNote(text)` hears what happens. */
  constructor({ objects, image = (name) => name, onNote = () => {} }) {
    Object.assign(this, { objects, image, onNote, run: String(process.pid), prefix: `${PREFIX}-${process.pid}` });
    this.workloads = new Map();
    this.pods = new Set();
    this.published = new Set(); // pods that are behind their Services
    this.overran = []; // containers that had to be killed
    this.number = 0;
    this.find = (kind, name, namespace) => this.objects.find(({ kind: of, metadata }) => of === kind && metadata.name === name && metadata.namespace === namespace);
  }

  nextNumber() {
    this.number += 1;
    return this.number;
  }

  note(text) {
    this.onNote(text);
  }

  /** Makes the network and its name server, and what clients stand in; no pod yet. */
  async open() {
    const missing = missingParts();
    if (missing.length > 0) throw new Problem(`Pods cannot run here. What is missing:\n  ${missing.join('\n  ')}`);
    this.folder = mkdtempSync(join(tmpdir(), `${this.prefix}-`));
    this.podman = new Podman(this.folder);
    await this.removeLeftovers();
    this.network = this.prefix;
    await this.podman.run('network', 'create', '--disable-dns', this.network);
    const [{ subnets: [{ subnet, gateway }] }] = JSON.parse(await this.podman.run('network', 'inspect', this.network));
    this.gateway = gateway;
    this.addressPrefix = subnet.replace(/\d+\/24$/, '');
    this.nextAddress = 10;
    this.services = ofKind(this.objects, 'Service').map((object, number) => ({ object, name: object.metadata.name, namespace: object.metadata.namespace, address: object.spec.clusterIP === 'None' ? undefined : `${SERVICE_NETWORK}${10 + number}` }));
    this.dnsFor = (namespace) => ({ server: gateway, searches: [`${namespace}.svc.${DOMAIN}`, `svc.${DOMAIN}`, DOMAIN] });
    await this.openClient();
    this.dns = await startDns(gateway);
  }

  /** A pod without a program: browsers and load run in its network namespace. */
  async openClient() {
    this.clientIp = this.takeAddress();
    const id = `${this.prefix}-client`;
    await this.podman.run('pod', 'create', '--name', id, '--network', this.network, '--ip', this.clientIp);
    const infra = (await this.podman.run('pod', 'inspect', '--format', '{{.InfraContainerID}}', id)).trim();
    await this.podman.run('start', infra);
    this.clientPid = Number(await this.podman.run('inspect', '--format', '{{.State.Pid}}', infra));
    await command('nsenter', ['--target', String(this.clientPid), '--net', 'sysctl', '-q', '-w', 'net.ipv4.conf.all.route_localnet=1']);
  }

  takeAddress() {
    this.nextAddress += 1;
    return `${this.addressPrefix}${this.nextAddress > 250 ? this.freeAddress() : this.nextAddress}`;
  }

  freeAddress() {
    const taken = new Set([this.clientIp, ...[...this.pods].map(({ ip }) => ip)]);
    for (let number = 11; number < 250; number += 1) if (!taken.has(`${this.addressPrefix}${number}`)) return number;
    throw new Problem('the network of the pods is full');
  }

  /** Starts every workload of the manifests, and the loop that looks after them. */
  async start() {
    this.looping = this.loop();
    for (const [kind, Kind] of [['StatefulSet', StatefulSet], ['Deployment', Deployment]]) {
      for (const object of ofKind(this.objects, kind)) this.workloads.set(object.metadata.name, new Kind(this, object));
    }
    await this.settled();
  }

  async loop() {
    while (!this.isClosed) {
      for (const workload of this.workloads.values()) workload.reconcile();
      for (const pod of this.pods) await pod.lookAtContainers();
      await pause(LOOK_MS);
    }
  }

  /** Waits until every workload has what it wants. */
  async settled(ms = SETTLE_MS) {
    await pause(LOOK_MS);
    const state = () => [...this.pods].map((pod) => `${pod.name}: ${pod.state}${pod.isReady ? ', ready' : ''}`).join('; ');
    await until(ms, async () => {
      await this.failOnCrashes();
      return [...this.workloads.values()].every(({ isSettled }) => isSettled);
    }, () => `not settled after ${ms / 1000} s: ${state()}`);
    await pause(2 * ENDPOINTS_LAG_MS);
  }

  /** A container that ends again and again does not get better by waiting. */
  async failOnCrashes() {
    for (const pod of this.pods) {
      const broken = pod.containers.find(({ crashes }) => crashes >= CRASHES);
      if (broken) throw new Problem(`${broken.id} ends again and again. It wrote:\n${await pod.log(broken)}`);
    }
  }

  workload(name) {
    const found = this.workloads.get(name);
    if (!found) throw new Problem(`no workload is called ${name}; there are ${[...this.workloads.keys()].join(', ')}`);
    return found;
  }

  podsOf(name) {
    return this.workload(name).live;
  }

  add(pod) {
    this.pods.add(pod);
  }

  forget(pod) {
    this.pods.delete(pod);
    for (const workload of this.workloads.values()) workload.forget(pod);
    this.endpointsChanged();
  }

  // ---------------------------------------------------------------- names, Services, policies

  /** Pods behind a Service. One that tells addresses that are not ready tells those that are ending too. */
  backends({ object, namespace }) {
    const { selector, publishNotReadyAddresses } = object.spec;
    if (!selector) return [];
    const isBehind = (pod) => pod.namespace === namespace && selects({ matchLabels: selector }, pod.labels);
    return [...this.pods].filter((pod) => isBehind(pod) && (this.published.has(pod) || (publishNotReadyAddresses && pod.netPid && pod.state !== 'gone')));
  }

  /** Every name: SERVICE.NAMESPACE.svc.cluster.local, and POD.SERVICE.… behind headless Services. */
  names() {
    const names = new Map();
    for (const service of this.services) {
      const name = `${service.name}.${service.namespace}.svc.${DOMAIN}`;
      const pods = service.address ? [] : this.backends(service);
      names.set(name, service.address ? [service.address] : pods.map(({ ip }) => ip));
      for (const pod of pods) names.set(`${pod.name}.${name}`, [pod.ip]);
    }
    return names;
  }

  endpointsChanged() {
    setTimeout(() => this.publish().catch((error) => this.note(error.message)), ENDPOINTS_LAG_MS);
  }

  /** Makes Services lead to the pods that are ready now, in every namespace at once. */
  async publish() {
    if (this.isClosed) return;
    this.published = new Set([...this.pods].filter(({ isReady }) => isReady));
    await this.writeRules();
  }

  /** Writes the rules of every namespace, by what is there when its turn has come: one writing after another. */
  writeRules() {
    this.writing = (this.writing ?? Promise.resolve()).then(async () => {
      if (this.isClosed) return;
      this.dns?.set(this.names());
      await Promise.all([...this.pods].map((pod) => this.rulesFor(pod)).concat(this.rulesForClient()));
    }).catch((error) => this.note(error.message));
    return this.writing;
  }

  world() {
    const services = this.services.filter(({ address }) => address).map((service) => ({
      name: service.name,
      namespace: service.namespace,
      address: service.address,
      ports: service.object.spec.ports.map((port) => ({
        port: port.port,
        protocol: (port.protocol ?? 'TCP').toLowerCase(),
        targets: this.backends(service).map((pod) => ({ ip: pod.ip, port: targetOf(pod, port) })).filter(({ port: at }) => at),
      })),
    }));
    const nameServer = { ip: this.gateway, namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' }, template: { spec: { containers: [] } } };
    return {
      services,
      policies: ofKind(this.objects, 'NetworkPolicy'),
      pods: [...this.pods, nameServer],
      labelsOf: (namespace) => ({ 'kubernetes.io/metadata.name': namespace, ...this.find('Namespace', namespace)?.metadata.labels }),
      node: this.gateway,
      trusted: [this.clientIp],
    };
  }

  async rulesFor(pod) {
    if (!pod.netPid || pod.state === 'gone') return;
    await this.nft(pod.netPid, tableOf(pod, this.world())).catch((error) => { if (!pod.isTerminating) throw error; });
  }

  async rulesForClient() {
    await this.nft(this.clientPid, clientTable(this.world().services, this.forwards ?? []));
  }

  nft(pid, rules) {
    return command('nsenter', ['--target', String(pid), '--net', 'nft', '--file', '-'], { input: rules });
  }

  /** Ports of the clients' loopback that lead to Services: [{port, service, servicePort}]. */
  async forward(forwards) {
    this.forwards = forwards;
    await this.writeRules();
  }

  /** Drops every packet between two groups of pods; gives what ends it. */
  async cut(some, others) {
    const sides = [[some, others], [others, some]];
    for (const [here, there] of sides) for (const pod of here) await this.nft(pod.netPid, cutTable(there.map(({ ip }) => ip)));
    return async () => {
      for (const pod of new Set(sides.flatMap(([here]) => here))) if (pod.state !== 'gone') await this.nft(pod.netPid, 'table inet cut {}\ndelete table inet cut\n').catch(() => {});
    };
  }

  /** Replaces what a ConfigMap or a Secret holds, and every file that shows it. */
  update(kind, namespace, name, data) {
    const object = this.find(kind, name, namespace);
    if (kind === 'Secret') {
      object.data = { ...object.data, ...Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])) };
      for (const key of Object.keys(data)) delete object.stringData?.[key];
    } else object.data = { ...object.data, ...data };
    for (const pod of this.pods) for (const volume of pod.volumes?.values() ?? []) if (!pod.isTerminating && pod.namespace === namespace && volume.shows(kind, name)) volume.write();
  }

  // ---------------------------------------------------------------- the end

  /** Removes what a run left that was killed itself. */
  async removeLeftovers() {
    const names = (await this.podman.run('pod', 'ps', '--format', '{{.Name}}')).split('\n').filter((name) => name.startsWith(`${PREFIX}-`));
    const isOver = (name) => {
      try { process.kill(Number(name.slice(PREFIX.length + 1).split('-')[0]), 0); } catch { return true; }
      return false;
    };
    for (const name of names.filter(isOver)) await this.podman.try('pod', 'rm', '--force', '--time', '0', name);
    const networks = (await this.podman.run('network', 'ls', '--format', '{{.Name}}')).split('\n').filter((name) => name.startsWith(`${PREFIX}-`));
    for (const name of networks.filter(isOver)) await this.podman.try('network', 'rm', '--force', name);
    const folders = readdirSync(tmpdir()).filter((name) => name.startsWith(`${PREFIX}-`) && !name.endsWith('-logs'));
    for (const name of folders.filter(isOver)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }

  /** Ends and removes everything that was started, by name. Logs stay in `keepLogsIn` if that is given. */
  async close() {
    if (this.isClosed) return;
    this.isClosed = true;
    await this.looping;
    this.dns?.stop();
    if (!this.podman) return;
    for (const pod of this.pods) for (const container of pod.containers) container.stopProbes?.();
    // again, until none is left: one may just have been on its way
    for (let names; names === undefined || names.length > 0; await pause(LOOK_MS)) {
      names = (await this.podman.try('pod', 'ps', '--format', '{{.Name}}')).split('\n').filter((name) => name.startsWith(`${this.prefix}-`));
      for (const name of names) await this.podman.try('pod', 'rm', '--force', '--time', '0', name);
    }
    await this.podman.try('network', 'rm', '--force', this.network);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Keeps what every container has written in a folder that stays; gives it. */
  async keepEverythingWritten() {
    if (!this.podman) return undefined;
    const kept = `${this.folder}-logs`;
    for (const pod of this.pods) if (pod.netPid) await pod.keepLogs();
    if (existsSync(join(this.folder, 'logs'))) cpSync(join(this.folder, 'logs'), kept, { recursive: true });
    return kept;
  }
}
