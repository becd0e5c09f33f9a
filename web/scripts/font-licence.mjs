// Adds the font to licences.md of a build. Vite lists only the packages whose script is in the build.
import { appendFileSync, readFileSync } from "node:fs";

const FONT = new URL("../node_modules/@fontsource-variable/hanken-grotesk/", import.meta.url);
const { name, version, license } = JSON.parse(readFileSync(new URL("package.json", FONT), "utf8"));
const text = readFileSync(new URL("LICENSE", FONT), "utf8").trim();
appendFileSync(
  new URL(`../${process.argv[2] ?? "dist"}/licences.md`, import.meta.url),
  `\n## ${name} - ${version} (${license})\n\n${text}\n`,
);
