// A root file system for an image: programs of this machine with the libraries they need.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

const librariesOf = (program) => [...spawnSync('ldd', [program], { encoding: 'utf8' }).stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => path);

/** Copies a file to the same place below `root`; a link becomes the file itself. */
function addFile(root, file, to = file) {
  const target = join(root, to);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(realpathSync(file), target);
}

/** Copies a program, to `to` if that is given, and every library that it links to. */
export function addProgram(root, program, to = program) {
  addFile(root, program, to);
  for (const library of librariesOf(program)) addFile(root, library);
}
