// Volumes of a pod as directories of this machine. What comes of ConfigMaps and Secrets is laid out and replaced as the kubelet
// does it: the files stand in a folder with a time for its name, `..data` is a link to that folder, each file a link through
// `..data`, and a change puts another folder under `..data` in one step.
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { keysOf, valueOf } from './manifests.mjs';

const DEFAULT_MODE = 0o644;

/** The files of a projected volume: path → {content, mode}. `find(kind, name)` gives an object. */
function filesOf(volume, find, field) {
  const files = new Map();
  const add = (kind, name, { items, optional }, mode) => {
    const object = find(kind, name);
    if (!object && optional) return;
    if (!object) throw new Error(`there is no ${kind} ${name}`);
    for (const { key, path, mode: own } of items ?? keysOf(object).map((key) => ({ key, path: key }))) {
      const content = valueOf(object, key);
      if (content === undefined && !optional) throw new Error(`${kind} ${name} has no key ${key}`);
      if (content !== undefined) files.set(path, { content, mode: own ?? mode });
    }
  };
  const addFields = (items, mode) => {
    for (const { path, fieldRef, mode: own } of items) files.set(path, { content: Buffer.from(field(fieldRef.fieldPath)), mode: own ?? mode });
  };
  const of = ({ configMap, secret, downwardAPI }, given) => {
    const mode = given ?? configMap?.defaultMode ?? secret?.defaultMode ?? downwardAPI?.defaultMode ?? DEFAULT_MODE;
    if (configMap) add('ConfigMap', configMap.name, configMap, mode);
    if (secret) add('Secret', secret.secretName ?? secret.name, secret, mode);
    if (downwardAPI) addFields(downwardAPI.items, mode);
  };
  if (volume.projected) for (const source of volume.projected.sources) of(source, volume.projected.defaultMode ?? DEFAULT_MODE);
  else of(volume);
  return files;
}

const isProjected = (volume) => Boolean(volume.configMap || volume.secret || volume.projected || volume.downwardAPI);

/** One volume of one pod, below `folder`. */
export class Volume {
  constructor(volume, { folder, find, field, fsGroup }) {
    Object.assign(this, { volume, find, field, fsGroup, turn: 0, name: volume.name });
    this.folder = join(folder, volume.name);
  }

  /** Makes it. What a claim holds outlives the pod, so it stands elsewhere: `claims`. */
  create(claims) {
    if (this.volume.persistentVolumeClaim) this.folder = join(claims, this.volume.persistentVolumeClaim.claimName);
    mkdirSync(this.folder, { recursive: true });
    if (isProjected(this.volume)) this.write();
    else {
      if (this.fsGroup !== undefined) chownSync(this.folder, 0, this.fsGroup);
      chmodSync(this.folder, 0o2775);
    }
    return this;
  }

  /** Whether it shows this ConfigMap or Secret. */
  shows(kind, name) {
    const sources = this.volume.projected?.sources ?? [this.volume];
    return sources.some(({ configMap, secret }) => (kind === 'ConfigMap' ? configMap?.name === name : secret && (secret.secretName ?? secret.name) === name));
  }

  /** Writes what its objects hold now, all of it in one step. */
  write() {
    const files = filesOf(this.volume, this.find, this.field);
    this.turn += 1;
    const data = `..${new Date().toISOString().replaceAll(/[:.]/g, '_')}_${this.turn}`;
    for (const [path, { content, mode }] of files) {
      const file = join(this.folder, data, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      // with a group of the pod's own, the group may read what the owner may
      chmodSync(file, this.fsGroup === undefined ? mode : mode | ((mode & 0o400) >> 3));
      if (this.fsGroup !== undefined) chownSync(file, 0, this.fsGroup);
    }
    mkdirSync(join(this.folder, data), { recursive: true });
    const link = join(this.folder, '..data');
    const before = existsSync(link) ? readlinkSync(link) : undefined;
    symlinkSync(data, `${link}_tmp`);
    renameSync(`${link}_tmp`, link);
    for (const [path] of files) {
      const [first] = path.split('/');
      const name = join(this.folder, first);
      if (!lstatSync(name, { throwIfNoEntry: false })) symlinkSync(join('..data', first), name);
    }
    if (before) rmSync(join(this.folder, before), { recursive: true, force: true });
  }
}
