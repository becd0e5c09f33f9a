// A base image with only this machine's node: for the development provider on machines without a registry.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { buildImage } from '../lib/containers.mjs';
import { addProgram } from './root.mjs';

const TAG = 'localhost/vestibule-node:dev';
const CONTAINERFILE = 'FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin\n';

/** Builds the image and returns its name. */
export async function buildNodeImage() {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-node-'));
  try {
    addProgram(join(folder, 'root'), process.execPath, '/usr/local/bin/node');
    writeFileSync(join(folder, 'Containerfile'), CONTAINERFILE);
    await buildImage({ file: join(folder, 'Containerfile'), context: join(folder, 'root'), tag: TAG, epoch: '0', quiet: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return TAG;
}
