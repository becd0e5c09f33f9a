// Deployments and StatefulSets: they bring their pods from what is there to what is wanted, a step at each look.
import { createHash, randomBytes } from 'node:crypto';

import { until } from '../net.mjs';
import { rollingBounds } from './pod-spec.mjs';
import { Pod } from './pod.mjs';

const SECOND_MS = 1_000;
const NAME_BYTES = 3;

/** A name for what a template says: another template, another revision. */
const revisionOf = (template) => createHash('sha256').update(JSON.stringify(template)).digest('hex').slice(0, 8);

class Workload {
  constructor(cluster, object) {
    Object.assign(this, { cluster, name: object.metadata.name, namespace: object.metadata.namespace, pods: [] });
    this.apply(object);
  }

  /** Takes another specification. */
  apply({ spec }) {
    this.spec = structuredClone(spec);
    this.replicas = spec.replicas ?? 1;
    this.setTemplate(this.spec.template);
  }

  setTemplate(template) {
    this.template = template;
    this.revision = revisionOf(template);
  }

  /** What `kubectl rollout restart` does: the same template with another mark, and so other pods. */
  restart() {
    const template = structuredClone(this.template);
    template.metadata.annotations = { ...template.metadata.annotations, 'kubectl.kubernetes.io/restartedAt': new Date().toISOString() };
    this.setTemplate(template);
  }

  setImage(image) {
    const template = structuredClone(this.template);
    template.spec.containers[0].image = image;
    this.setTemplate(template);
  }

  get minReadyMs() {
    return (this.spec.minReadySeconds ?? 0) * SECOND_MS;
  }

  isAvailable(pod) {
    return pod.isReady && performance.now() - pod.readySince >= this.minReadyMs;
  }

  get live() {
    return this.pods.filter(({ isTerminating }) => !isTerminating);
  }

  /** Whether everything is as it is wanted, and nothing is left of before. */
  get isSettled() {
    return this.pods.length === this.replicas && this.pods.every((pod) => !pod.isTerminating && pod.revision === this.revision && this.isAvailable(pod));
  }

  create(name, claims) {
    const pod = new Pod(this.cluster, { name, namespace: this.namespace, template: this.labelled(name), revision: this.revision, claims });
    this.pods.push(pod);
    this.cluster.add(pod);
    pod.start().catch((error) => {
      this.cluster.note(`${name} does not start: ${error.message}`);
      pod.delete(0);
    });
    return pod;
  }

  labelled() {
    return this.template;
  }

  forget(pod) {
    this.pods = this.pods.filter((one) => one !== pod);
  }
}

export class Deployment extends Workload {
  /** One step nearer to what is wanted. */
  reconcile() {
    const { live, replicas } = this;
    const { surge, missing } = rollingBounds({ ...this.spec, replicas });
    const old = live.filter(({ revision }) => revision !== this.revision);
    const fresh = live.length - old.length;
    const available = live.filter((pod) => this.isAvailable(pod));
    if (fresh < replicas && live.length < replicas + surge) return this.create(`${this.name}-${randomBytes(NAME_BYTES).toString('hex')}`);
    if (old.length > 0) {
      const broken = old.find((pod) => !this.isAvailable(pod));
      const victim = broken ?? (available.length > replicas - missing ? old[0] : undefined);
      return victim?.delete();
    }
    if (live.length > replicas) return (live.find((pod) => !this.isAvailable(pod)) ?? live.at(-1)).delete();
    return undefined;
  }
}

export class StatefulSet extends Workload {
  get isParallel() {
    return this.spec.podManagementPolicy === 'Parallel';
  }

  labelled(name) {
    const template = structuredClone(this.template);
    Object.assign(template.metadata.labels, { 'statefulset.kubernetes.io/pod-name': name, 'apps.kubernetes.io/pod-index': name.slice(this.name.length + 1) });
    return template;
  }

  at(number) {
    return this.pods.find(({ name }) => name === `${this.name}-${number}`);
  }

  reconcile() {
    const numbers = Array.from({ length: this.replicas }, (_, number) => number);
    for (const number of numbers) {
      const pod = this.at(number);
      if (!pod) {
        this.create(`${this.name}-${number}`, this.claims(number));
        if (!this.isParallel) return;
      } else if (!this.isParallel && !this.isAvailable(pod)) {
        // the pods after it wait for it; one of an older revision that is broken is replaced
        if (!pod.isTerminating && pod.revision !== this.revision && !pod.isReady) pod.delete();
        return;
      }
    }
    for (const pod of this.live) if (Number(pod.name.slice(this.name.length + 1)) >= this.replicas) return void pod.delete();
    if (this.spec.updateStrategy?.type === 'OnDelete') return;
    // the last first, each only when the others are there
    const old = numbers.toReversed().map((number) => this.at(number)).find((pod) => pod?.revision !== this.revision);
    const others = this.pods.filter((pod) => pod !== old);
    if (old && !old.isTerminating && others.every((pod) => !pod.isTerminating && this.isAvailable(pod))) old.delete();
  }

  claims(number) {
    return (this.spec.volumeClaimTemplates ?? []).map(({ metadata }) => ({
      name: metadata.name, persistentVolumeClaim: { claimName: `${metadata.name}-${this.name}-${number}` },
    }));
  }
}

/**
 * What `kubectl create job --from=cronjob/NAME` does, with other arguments: a pod that runs once. Gives its exit code and what it wrote.
 */
export async function runJob(cluster, cronJob, args, withinMs) {
  const { metadata, spec } = cronJob;
  const template = structuredClone(spec.jobTemplate.spec.template);
  if (args) template.spec.containers[0].args = args;
  const pod = new Pod(cluster, { name: `${metadata.name}-${randomBytes(NAME_BYTES).toString('hex')}`, namespace: metadata.namespace, template, revision: revisionOf(template) });
  cluster.add(pod);
  try {
    await pod.start();
    const [container] = pod.containers;
    await until(withinMs, () => container.exitCode !== undefined, () => `${pod.name} did not end in ${withinMs / SECOND_MS} s`);
    return { code: container.exitCode, output: await pod.log(container) };
  } finally {
    await pod.delete(0);
  }
}
