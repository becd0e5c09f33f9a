// Fails the build when a visit would load more compressed script than promised, or when index.html is not fit for the
// strict content security policy. A "first visit" opens a public page; a "deep link" opens an account page with nothing
// cached, and loads the gRPC-Web stack too.
import { readFile, rm } from "node:fs/promises";
import zlib from "node:zlib";

const FIRST_VISIT_BYTES = 120_000;
const DEEP_LINK_BYTES = 140_000;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(await readFile(new URL("manifest.json", dist), "utf8"));
const html = await readFile(new URL("index.html", dist), "utf8");

function closure(key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) closure(next, seen);
  return seen;
}

async function weigh(keys) {
  let bytes = 0;
  for (const key of keys) {
    // What is served: scripts/precompress.mjs has written it.
    const content = await readFile(new URL(manifest[key].file, dist));
    bytes += zlib.brotliCompressSync(content).length;
  }
  return bytes;
}

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const shell = closure(entry);
const guard = "src/shell/Guarded.tsx";
const pages = Object.keys(manifest).filter(
  (key) => /^src\/pages\//.test(key) && manifest[key].isDynamicEntry,
);
const first = await weigh(shell);
const deep = Math.max(
  ...(await Promise.all(pages.map((page) => weigh(closure(page, closure(guard, new Set(shell))))))),
);
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
console.log(
  `script, compressed: first visit ${kB(first)} of ${kB(FIRST_VISIT_BYTES)}, deep link ${kB(deep)} of ${kB(DEEP_LINK_BYTES)}`,
);

const faults = [];
if (pages.length === 0) faults.push("no account page was found: this script no longer knows the build");
if (first > FIRST_VISIT_BYTES)
  faults.push(`a first visit loads ${kB(first)} of script; ${kB(FIRST_VISIT_BYTES)} is the limit`);
if (deep > DEEP_LINK_BYTES)
  faults.push(`a deep link loads ${kB(deep)} of script; ${kB(DEEP_LINK_BYTES)} is the limit`);
if (/<script(?![^>]*\ssrc=)[^>]*>/i.test(html)) faults.push("index.html has an inline script");
if (/<style|\sstyle=|\son[a-z]+=/i.test(html)) faults.push("index.html has an inline style or event handler");
if (/(?:src|href)="(?:https?:)?\/\//i.test(html)) faults.push("index.html loads from another origin");
// The manifest was for this script alone; it is not part of the site.
for (const suffix of ["", ".br", ".gz"]) await rm(new URL(`manifest.json${suffix}`, dist), { force: true });
for (const fault of faults) console.error(`budget: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
