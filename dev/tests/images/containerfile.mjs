// Parses the Containerfile and the files that its stages copy, for tests.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { buildFiles } from '../../lib/containers.mjs';
import { ROOT } from '../../stack.mjs';

/** The stages: `{name, base, lines}`, and the `args` before them, by name. */
export function containerfile() {
  const text = readFileSync(join(ROOT, 'Containerfile'), 'utf8').replace(/\\\n/g, ' ');
  const lines = text.split('\n').map((line) => line.trim()).filter((line) => line && !line.startsWith('#'));
  const first = lines.findIndex((line) => line.startsWith('FROM '));
  const args = Object.fromEntries(lines.slice(0, first).map((line) => line.replace('ARG ', '').split(/=(.*)/)));
  const stages = [];
  for (const line of lines.slice(first)) {
    const [, base, name] = /^FROM (?:--platform=\S+ )?(\S+) AS (\S+)$/.exec(line) ?? [];
    if (name) stages.push({ name, base, lines: [] });
    else stages.at(-1).lines.push(line);
  }
  return { args, stages, stage: (name) => stages.find((stage) => stage.name === name) };
}

/** The files that the COPY lines of a stage take from the context, in a temporary folder that `use` receives. */
export async function withCopied(stage, use, { context = ROOT } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-context-'));
  try {
    const copies = stage.lines.filter((line) => line.startsWith('COPY ') && !line.includes('--from='));
    writeFileSync(join(folder, 'Containerfile'), ['FROM scratch', 'WORKDIR /source', ...copies, ''].join('\n'));
    await buildFiles({ file: join(folder, 'Containerfile'), ignoreFile: join(ROOT, '.dockerignore'), context, to: join(folder, 'files') });
    return await use(join(folder, 'files/source'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
