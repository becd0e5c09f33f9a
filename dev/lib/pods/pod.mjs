// One pod: its directories, its containers in podman, its probes, its end. What a kubelet does for it.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { pause } from '../net.mjs';
import { containersOf, environment, fieldOf, podmanArguments } from './pod-spec.mjs';
import { watch } from './probes.mjs';
import { Volume } from './volumes.mjs';

const FIRST_BACK_OFF_MS = 10_000; // the kubelet's: at once, then after 10 s, 20 s, …
const LAST_BACK_OFF_MS = 300_000;
const FORGOTTEN_MS = 600_000; // what has run for so long begins with the first again
const LOOK_MS = 100; // between two looks whether a container has ended
const CRASHED_MS = 10_000; // what ends so soon after its start has crashed
const GRACE_S = 30; // Kubernetes' own, where a pod names none

/** When the process of this id began, in ticks of the kernel; undefined when there is none. */
function begunAt(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')[19];
  } catch {
    return undefined;
  }
}

const isAlive = ({ pid, begun }) => pid !== undefined && begunAt(pid) === begun;

export class Pod {
  /** `cluster` gives podman, objects, folders and addresses; `template` is a pod template; `claims` are volumes that outlive the pod. */
  constructor(cluster, { name, namespace, template, revision, claims = [] }) {
    Object.assign(this, { cluster, name, namespace, template, revision, claims });
    this.labels = template.metadata.labels ?? {};
    this.id = `${cluster.prefix}-${name}-${cluster.nextNumber()}`;
    this.uid = this.id;
    this.ip = cluster.takeAddress();
    this.nodeIp = cluster.gateway;
    this.folder = join(cluster.folder, 'pods', this.id);
    this.containers = containersOf(template).map((container) => ({ ...container, id: `${this.id}-${container.name}`, restarts: 0, crashes: 0, isReady: false, isStarted: false }));
    this.state = 'pending'; // running, terminating, gone
    this.readySince = undefined;
  }

  get isReady() {
    return this.readySince !== undefined;
  }

  get isTerminating() {
    return this.state === 'terminating' || this.state === 'gone';
  }

  /** Starts it; resolves once its containers run. What stands in the way goes to the cluster's log and is tried again. */
  async start() {
    const { cluster } = this;
    const fsGroup = this.template.spec.securityContext?.fsGroup;
    const field = (path) => fieldOf(this, path);
    this.find = (kind, name) => cluster.find(kind, name, this.namespace);
    this.volumes = new Map([...(this.template.spec.volumes ?? []), ...this.claims].map((volume) => [
      volume.name, new Volume(volume, { folder: join(this.folder, 'volumes'), find: this.find, field, fsGroup }).create(join(cluster.folder, 'claims')),
    ]));
    mkdirSync(this.folder, { recursive: true });
    const { podman } = cluster;
    const { pod, containers } = podmanArguments(this, { find: this.find, volumes: this.volumes, image: cluster.image, network: cluster.network, dns: cluster.dnsFor(this.namespace) });
    await podman.run('pod', 'create', ...pod);
    for (const container of containers) await podman.run('create', ...container);
    const infra = (await podman.run('pod', 'inspect', '--format', '{{.InfraContainerID}}', this.id)).trim();
    await podman.run('start', infra);
    this.netPid = Number(await podman.run('inspect', '--format', '{{.State.Pid}}', infra));
    await cluster.writeRules(); // its own, and those of others that may speak to it, before its first packet
    if (this.isTerminating) return;
    this.state = 'running';
    for (const container of this.containers) await this.startContainer(container);
  }

  async startContainer(container) {
    const { podman } = this.cluster;
    await podman.run('start', container.id);
    const [pid, exit] = (await podman.run('inspect', '--format', '{{.State.Pid}} {{.State.ExitCode}}', container.id)).trim().split(' ').map(Number);
    container.pid = pid || undefined;
    container.begun = begunAt(pid);
    container.startedAt = performance.now();
    if (container.init) {
      while (isAlive(container)) await pause(LOOK_MS);
      const code = pid ? Number(await podman.run('wait', container.id)) : exit;
      if (code !== 0) throw new Error(`${container.id} ended with code ${code}:\n${await this.log(container)}`);
      return;
    }
    const { securityContext: own = {} } = container;
    const all = this.template.spec.securityContext ?? {};
    Object.assign(container, { user: own.runAsUser ?? all.runAsUser, group: own.runAsGroup ?? all.runAsGroup, isStarted: false, isReady: false });
    container.process = { pid, env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...environment(container, this, this.find) }, user: container.user, group: container.group };
    this.probe(container);
  }

  /** Begins to look at a container: until it has started, and then whether it is ready and whether it lives. */
  probe(container) {
    const { startupProbe, readinessProbe, livenessProbe } = container;
    const stops = [];
    container.stopProbes = () => stops.splice(0).forEach((stop) => stop());
    const look = (probe, told) => stops.push(watch(probe, this, container.process, told));
    const started = () => {
      container.isStarted = true;
      container.stopProbes();
      if (livenessProbe) look(livenessProbe, (well) => !well && this.restart(container, 'it did not answer its liveness probe'));
      if (readinessProbe) look(readinessProbe, (well) => this.setReady(container, well));
      else this.setReady(container, true);
    };
    if (startupProbe) look(startupProbe, (well) => (well ? started() : this.restart(container, 'it did not start in time')));
    else started();
  }

  setReady(container, isReady) {
    container.isReady = isReady;
    const all = this.state === 'running' && this.containers.every((each) => each.init || each.isReady);
    if (all && !this.isReady) this.readySince = performance.now();
    else if (!all && this.isReady) this.readySince = undefined;
    else return;
    this.cluster.note(`${this.name} is ${all ? 'ready' : 'not ready'}`);
    this.cluster.endpointsChanged();
  }

  /** What the kubelet does about a container that has ended: notices it, and starts it again after a back-off. */
  async lookAtContainers() {
    if (this.state !== 'running') return;
    for (const container of this.containers) {
      if (container.init || container.process === undefined || container.isRestarting || isAlive(container)) continue;
      container.isRestarting = true;
      if (performance.now() - container.startedAt < CRASHED_MS) container.crashes += 1;
      container.stopProbes?.();
      this.setReady(container, false);
      if (this.template.spec.restartPolicy === 'Never') {
        container.exitCode = Number(await this.cluster.podman.try('inspect', '--format', '{{.State.ExitCode}}', container.id));
        continue;
      }
      if (performance.now() - container.startedAt > FORGOTTEN_MS) container.restarts = 0;
      const wait = container.restarts === 0 ? 0 : Math.min(LAST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (container.restarts - 1));
      const why = (await this.cluster.podman.try('inspect', '--format', '{{.State.ExitCode}}{{if .State.OOMKilled}}, out of memory{{end}}', container.id)).trim();
      this.cluster.note(`${container.id} ended with code ${why}; it is started again in ${wait / 1000} s`);
      this.restarting = pause(wait).then(async () => {
        while (container.isHeld && !this.cluster.isClosed) await pause(LOOK_MS);
        if (this.state !== 'running' || this.cluster.isClosed) return;
        container.restarts += 1;
        await this.startContainer(container);
      }).catch((error) => this.cluster.note(error.message)).finally(() => { container.isRestarting = false; });
    }
  }

  async restart(container, why) {
    if (container.isRestarting || this.state !== 'running') return;
    this.cluster.note(`${container.id} is restarted: ${why}`);
    container.stopProbes();
    this.setReady(container, false);
    await this.end(container, this.grace);
  }

  get grace() {
    return this.template.spec.terminationGracePeriodSeconds ?? GRACE_S;
  }

  /** SIGTERM, and SIGKILL for what has not ended in time. The signal goes to containers: podman would end a pod's network with it. */
  async end(container, graceSeconds) {
    if (!isAlive(container)) return;
    const { preStop } = container.lifecycle ?? {};
    if (preStop?.sleep) await pause(preStop.sleep.seconds * 1000);
    else if (preStop) throw new Error(`${container.id} has a preStop hook of a kind that is not known here`);
    await this.cluster.podman.try('kill', '--signal', 'TERM', container.id);
    const until = performance.now() + graceSeconds * 1000;
    while (isAlive(container) && performance.now() < until) await pause(LOOK_MS);
    if (!isAlive(container)) return;
    this.cluster.note(`${container.id} did not stop in ${graceSeconds} s and is killed`);
    this.cluster.overran.push(container.id);
    await this.cluster.podman.try('kill', '--signal', 'KILL', container.id);
  }

  /** Ends it as the deletion of a pod does: out of its Services, and told to stop, at the same moment. */
  async delete(grace = this.grace) {
    if (this.isTerminating) return this.deleted;
    const wasRunning = this.state === 'running';
    this.state = 'terminating';
    this.readySince = undefined;
    this.cluster.endpointsChanged();
    this.deleted = (async () => {
      if (wasRunning) await Promise.all(this.containers.filter(({ init }) => !init).map((container) => this.end(container, grace)));
      for (const container of this.containers) container.stopProbes?.();
      await this.keepLogs();
      await this.cluster.podman.try('pod', 'rm', '--force', '--time', '0', this.id);
      rmSync(this.folder, { recursive: true, force: true });
      this.state = 'gone';
      this.cluster.forget(this);
    })();
    return this.deleted;
  }

  /** Kills the first process of a container, as the kernel would. */
  kill(name = this.containers.find(({ init }) => !init).name) {
    const { pid } = this.containers.find((container) => container.name === name);
    process.kill(pid, 'SIGKILL');
  }

  /** Freezes every process of a container; gives what lets them go on. */
  async freeze(name) {
    const { id } = this.containers.find((container) => container.name === name);
    await this.cluster.podman.run('pause', id);
    return () => this.cluster.podman.run('unpause', id);
  }

  /** Kills a container and keeps it from being started again until `release`. */
  hold(name) {
    const container = this.containers.find((one) => one.name === name);
    container.isHeld = true;
    process.kill(container.pid, 'SIGKILL');
  }

  release(name) {
    this.containers.find((one) => one.name === name).isHeld = false;
  }

  /** What a container wrote last. */
  log(container, lines = 20) {
    return this.cluster.podman.logs(container.id, '--tail', String(lines));
  }

  async keepLogs() {
    const folder = join(this.cluster.folder, 'logs');
    mkdirSync(folder, { recursive: true });
    for (const container of this.containers) writeFileSync(join(folder, `${container.id}.log`), await this.cluster.podman.logs(container.id), { mode: 0o600 });
  }
}
