// One pod on podman: its volumes, containers, probes and end. podman restarts ended containers, as the kubelet does.
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { Problem } from '../build.mjs';
import { podmanEnvironment } from '../containers.mjs';
import { pause, until } from '../net.mjs';
import { contentsOf, createArguments } from './manifests.mjs';

const READY_MS = 120_000;
const PROBE_MS = 4_000; // the longest timeout of the manifests
const LOOK_MS = 300; // between two probes: an exec probe starts a program
const OUTPUT_BYTES = 64 * 1024 * 1024;

/** Runs podman and returns its standard output. */
export async function podman(...args) {
  return (await promisify(execFile)('podman', args, { env: podmanEnvironment(), maxBuffer: OUTPUT_BYTES })).stdout.trim();
}

const answersHttp = (host, port, path) => new Promise((resolve) => {
  const request = http.get({ host, port, path, agent: false, timeout: PROBE_MS }, (response) => {
    response.resume();
    resolve(response.statusCode < 400);
  });
  request.on('timeout', () => request.destroy()).on('error', () => resolve(false));
});

const answersTcp = (host, port) => new Promise((resolve) => {
  const socket = net.connect({ host, port, timeout: PROBE_MS }, () => socket.destroy(resolve(true)));
  socket.on('timeout', () => socket.destroy(resolve(false))).on('error', () => resolve(false));
});

export class Pod {
  /** `cluster` has objects, images, network and folder; `claims` names the volumes that outlive the pod. */
  constructor(cluster, { name, template, claims, aliases, ip, number, find }) {
    Object.assign(this, { cluster, name, template, claims, aliases, ip, find });
    this.id = `${cluster.prefix}-${name}-${number}`;
    this.folder = join(cluster.folder, this.id);
  }

  get containers() {
    return this.template.spec.containers;
  }

  idOf(container) {
    return `${this.id}-${container.name}`;
  }

  async start() {
    const { spec } = this.template;
    const group = spec.securityContext.fsGroup ?? 0;
    this.volumes = new Map([...(spec.volumes ?? []).map((volume) => [volume.name, this.#makeVolume(volume, group)]), ...this.claims.map((name) => [name, this.#makeFolder(join(this.cluster.folder, 'claims', `${this.name}-${name}`), group)])]);
    const options = (spec.dnsConfig?.options ?? []).flatMap(({ name, value }) => ['--dns-option', `${name}:${value}`]);
    const network = [`${this.cluster.network}:ip=${this.ip}`, ...this.aliases.map((alias) => `alias=${alias}`)].join();
    await podman('pod', 'create', '--name', this.id, '--hostname', this.name, '--network', network, '--exit-policy', 'continue', ...options);
    for (const container of this.containers) await podman('create', ...createArguments(container, this, { find: this.find, image: this.cluster.image }));
    await podman('pod', 'start', this.id);
  }

  #makeFolder(folder, group) {
    mkdirSync(folder, { recursive: true });
    chownSync(folder, 0, group);
    chmodSync(folder, 0o2775);
    return folder;
  }

  /** A folder with the files of a ConfigMap or Secret, or an empty one. The pod's group may read as the owner may. */
  #makeVolume({ name, configMap, secret, emptyDir }, group) {
    if (!configMap && !secret && !emptyDir) throw new Problem(`${this.name}: the volume ${name} is of a kind that is not known here`);
    const folder = this.#makeFolder(join(this.folder, name), group);
    const source = configMap ? this.find('ConfigMap', configMap.name) : secret && this.find('Secret', secret.secretName);
    for (const [key, content] of source ? contentsOf(source) : []) {
      const file = join(folder, key);
      writeFileSync(file, content);
      chownSync(file, 0, group);
      chmodSync(file, secret ? 0o440 : 0o644);
    }
    return folder;
  }

  /** Whether a probe succeeds now; a container without this probe passes. */
  async succeeds(container, probe) {
    if (!probe) return true;
    if (probe.exec) return podman('exec', this.idOf(container), ...probe.exec.command).then(() => true, () => false);
    const { port: named, path } = probe.httpGet ?? probe.tcpSocket;
    const port = container.ports.find(({ name }) => name === named).containerPort;
    return probe.httpGet ? answersHttp(this.ip, port, path) : answersTcp(this.ip, port);
  }

  /** Whether every container passes this probe: startupProbe, readinessProbe or livenessProbe. */
  async passes(kind) {
    const passed = await Promise.all(this.containers.map((container) => this.succeeds(container, container[kind])));
    return !passed.includes(false);
  }

  /** Waits until the pod has started and is ready. */
  async ready() {
    for (const kind of ['startupProbe', 'readinessProbe']) {
      const end = Date.now() + READY_MS;
      while (!(await this.passes(kind))) {
        if (Date.now() > end) throw new Problem(`${this.name} does not pass its ${kind}:\n${await this.logs()}`);
        await pause(LOOK_MS);
      }
    }
    return this;
  }

  /** Kills the first process of a container as the kernel would, and waits until podman has restarted it. */
  async kill(container = this.containers[0]) {
    const pid = () => podman('inspect', '--format', '{{.State.Pid}}', this.idOf(container)).then(Number);
    const killed = await pid();
    process.kill(killed, 'SIGKILL');
    let now = 0;
    const isBack = async () => { now = await pid(); return now !== 0 && now !== killed; };
    await until(READY_MS, isBack, () => `${this.name} is not started again`);
  }

  /** Ends the pod as a deletion does; returns the exit codes. 137 means that the grace period was too short. */
  async delete() {
    const ids = this.containers.map((container) => this.idOf(container));
    await podman('stop', '--time', String(this.template.spec.terminationGracePeriodSeconds ?? 30), ...ids);
    const codes = await podman('inspect', '--format', '{{.State.ExitCode}}', ...ids);
    await podman('pod', 'rm', '--force', '--time', '0', this.id);
    rmSync(this.folder, { recursive: true, force: true });
    return codes.split('\n').map(Number);
  }

  async logs() {
    const texts = await Promise.all(this.containers.map((container) => podman('logs', '--tail', '20', this.idOf(container)).catch((error) => error.message)));
    return texts.join('\n');
  }
}
