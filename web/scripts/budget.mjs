// Fails the build when a first visit would load more script than promised, or when the page is not fit for the strict
// content security policy. "First visit" is the entry, all it imports, and the largest page: what somebody who opens a
// deep link waits for.
import { readFile } from "node:fs/promises";
import zlib from "node:zlib";

const BUDGET_BYTES = 120_000;
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
    bytes += zlib.gzipSync(await readFile(new URL(manifest[key].file, dist)), { level: 9 }).length;
  }
  return bytes;
}

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const shell = closure(entry);
const pages = (manifest[entry].dynamicImports ?? []).map((page) => closure(page, new Set(shell)));
const sizes = await Promise.all([shell, ...pages].map(weigh));
const worst = Math.max(...sizes);
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
console.log(
  `script on a first visit: ${kB(sizes[0])} shell, ${kB(worst)} heaviest page, ${kB(BUDGET_BYTES)} allowed (gzip)`,
);

const faults = [];
if (worst > BUDGET_BYTES)
  faults.push(`a first visit loads ${kB(worst)} of compressed script; ${kB(BUDGET_BYTES)} is the limit`);
if (/<script(?![^>]*\ssrc=)[^>]*>/i.test(html)) faults.push("index.html has an inline script");
if (/<style|\sstyle=|\son[a-z]+=/i.test(html)) faults.push("index.html has an inline style or event handler");
if (/(?:src|href)="(?:https?:)?\/\//i.test(html)) faults.push("index.html loads from another origin");
for (const fault of faults) console.error(`budget: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
