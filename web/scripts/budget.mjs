// Fails the build if the first load of a page has more compressed script than the budget allows, or if index.html
// violates the strict content security policy. The build's manifest says what a page loads first:
// the entry, and for a guarded page also the guard, that page and all their imports.
import { readFile, rm } from "node:fs/promises";
import zlib from "node:zlib";

const FIRST_LOAD_BYTES = 120_000;
// Few people open the operators' pages, and at a desk. All of them are one file.
const OPERATOR_BYTES = 140_000;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(await readFile(new URL("manifest.json", dist), "utf8"));
const keys = Object.keys(manifest);
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
    // The file that scripts/precompress.mjs has written, which is the one that is served.
    bytes += zlib.brotliCompressSync(await readFile(new URL(manifest[key].file, dist))).length;
  }
  return bytes;
}

// Each page loads one language file, and an operators' page another one. The largest one counts, so that the budget
// holds for every language.
const languagesIn = (folder) => keys.filter((key) => folder.test(key) && manifest[key].isDynamicEntry);
const largestOf = async (files) => Math.max(0, ...(await Promise.all(files.map((key) => weigh([key])))));
const languages = languagesIn(/^src\/words\/[^/]*$/);
const largest = await largestOf(languages);
const OPERATOR = "src/pages/operator/Console.tsx";
const operatorLanguage = await largestOf(languagesIn(/^src\/words\/operator\//));

const faults = [];
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
async function check(name, keys) {
  const [own, limit] = keys.has(OPERATOR) ? [operatorLanguage, OPERATOR_BYTES] : [0, FIRST_LOAD_BYTES];
  const bytes = largest + own + (await weigh(keys));
  console.log(`script, compressed: ${name.padEnd(28)} ${kB(bytes)} of ${kB(limit)}`);
  if (bytes > limit) faults.push(`opening ${name} loads ${kB(bytes)} of script; ${kB(limit)} is the limit`);
}

const entry = keys.find((key) => manifest[key].isEntry);
const shell = closure(entry);
const guard = "src/shell/Guarded.tsx";
const pages = keys.filter((key) => /^src\/pages\//.test(key) && manifest[key].isDynamicEntry);
const known = manifest[guard]?.isDynamicEntry && pages.length >= 3;
if (languages.length === 0)
  faults.push("no second language was found: this script no longer knows the build");
if (!known) faults.push("the guard or its pages were not found: this script no longer knows the build");
else {
  await check("a public page", shell);
  const guarded = closure(guard, new Set(shell));
  for (const page of pages) await check(page.replace(/^src\/pages\//, ""), closure(page, new Set(guarded)));
  // Not part of a first load: the browser fetches the other pages while the person reads the first one.
  const fetched = pages.filter((page) => page !== OPERATOR);
  const all = await weigh(fetched.reduce((seen, key) => closure(key, seen), new Set(guarded)));
  console.log(`script, compressed: all pages behind the guard   ${kB(largest + all)}, once one is open`);
}

if (/<script(?![^>]*\ssrc=)[^>]*>/i.test(html)) faults.push("index.html has an inline script");
if (/<style|\sstyle=|\son[a-z]+=/i.test(html)) faults.push("index.html has an inline style or event handler");
if (/(?:src|href)="(?:https?:)?\/\//i.test(html)) faults.push("index.html loads from another origin");
// Only this script needs the manifest; the site does not.
for (const suffix of ["", ".br", ".gz"]) await rm(new URL(`manifest.json${suffix}`, dist), { force: true });
for (const fault of faults) console.error(`budget: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
