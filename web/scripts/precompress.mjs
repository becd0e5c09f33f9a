// Writes a .br and a .gz next to every text file of the build, so that servers need not compress them.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import zlib from "node:zlib";

const brotli = promisify(zlib.brotliCompress);
const gzip = promisify(zlib.gzip);
const dist = new URL(`../${process.argv[2] ?? "dist"}/`, import.meta.url).pathname;
const TEXT = /\.(html|js|css|svg|json|txt)$/;
// For smaller files, the header of a compressed response costs more than compression saves.
const WORTH_IT_BYTES = 512;

for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (!entry.isFile() || !TEXT.test(path)) continue;
  const content = await readFile(path);
  if (content.length < WORTH_IT_BYTES) continue;
  const hint = { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  await Promise.all([
    brotli(content, { params: hint }).then((bytes) => writeFile(`${path}.br`, bytes)),
    gzip(content, { level: 9 }).then((bytes) => writeFile(`${path}.gz`, bytes)),
  ]);
}
