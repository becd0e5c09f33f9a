// `make pods`: the manifests of k8s/overlays/dev as real pods on this machine, two of each, people signed in, and everything that can
// happen to them under 300 requests a second. Ends by itself, with a table; exit code 1 when a line of dev/lib/pods/contract.mjs is not kept.
//
//   node dev/pods.mjs                            every event
//   node dev/pods.mjs --only 'edge,kill -9'      those whose name has one of these in it
//   node dev/pods.mjs --list                     their names
//   node dev/pods.mjs --images default           images made in containers by the Containerfile alone; host (the default) from
//                                                programs built here; default-stand-in without a registry; debug; tag:NAME takes what is there
//   node dev/pods.mjs --previous REVISION        the version that runs beside this one (the last release)
//   node dev/pods.mjs --seconds 10 --rate 300    how long each event is under load at least, and requests a second
//   node dev/pods.mjs --write-docs               writes the table of docs/kubernetes/pods.md, of this run and of earlier ones of the same images
//   node dev/pods.mjs --verbose                  says what happens to each pod
//
// Needs root, podman and what dev/lib/pods/podman.mjs names. Everything that was started is removed at the end, images stay.
import { parseArgs } from 'node:util';

import { Problem } from './lib/build.mjs';
import { EVENTS } from './lib/pods/events.mjs';
import { idsOf, images, previousImages, revisionOf } from './lib/pods/images.mjs';
import { measure } from './lib/pods/measure.mjs';
import { keep, line, table, writeDocument } from './lib/pods/report.mjs';
import { browse, openWorld } from './lib/pods/world.mjs';

const { values } = parseArgs({ options: {
  only: { type: 'string' }, images: { type: 'string', default: 'host' }, previous: { type: 'string' }, seconds: { type: 'string', default: '10' }, rate: { type: 'string', default: '300' },
  'write-docs': { type: 'boolean', default: false }, list: { type: 'boolean', default: false }, verbose: { type: 'boolean', default: false },
} });
const wanted = values.only?.split(',');
const events = EVENTS.filter(({ name }) => !wanted || wanted.some((part) => name.includes(part)));
const say = (text) => process.stdout.write(`${text}\n`);
if (values.list || events.length === 0) {
  EVENTS.forEach(({ name }) => say(name));
  process.exit(values.list ? 0 : 2);
}

let world;
let tag;
const results = [];
try {
  tag = await images(values.images, say);
  const previous = events.some((event) => event.previous) ? await previousImages(values.previous, say) : {};
  const began = Date.now();
  const note = values.verbose ? (text) => say(`  ${((Date.now() - began) / 1000).toFixed(1)} ${text}`) : undefined;
  world = await openWorld({ tag, previousTag: previous.tag, rate: Number(values.rate), seconds: Number(values.seconds), say, note });
  const { text, problems } = await browse(world);
  if (!text.includes(world.accounts[0].name) || problems.length > 0) throw new Problem(`the browser came to this page: ${text}\n${problems.join('\n')}`);
  say(`a browser has signed in as ${world.accounts[0].name}`);
  for (const event of events) {
    const result = await measure(event, world);
    results.push(result);
    say(line(result));
  }
  say(`\n${table(results)}`);
  const about = `Images: ${tag}, of commit ${revisionOf(tag).slice(0, 7)}; the version before: ${previous.revision ?? 'none'}; ${values.rate} requests a second.`;
  const all = keep(results, idsOf(tag));
  if (values['write-docs']) writeDocument(all, about);
  const broken = results.filter(({ complaints }) => complaints.length > 0);
  if (broken.length > 0) say(`broken: ${broken.map(({ name }) => name).join(', ')}; what the containers wrote: ${await world.cluster.keepEverythingWritten()}`);
  process.exitCode = broken.length === 0 ? 0 : 1;
} catch (error) {
  if (results.length > 0) keep(results, idsOf(tag)); // a further run may begin where this one ended
  const written = world && `\nwhat the containers wrote: ${await world.cluster.keepEverythingWritten()}`;
  process.stderr.write(`${results.length > 0 ? `${table(results)}\n` : ''}${error instanceof Problem ? error.message : error.stack}${written ?? ''}\n`);
  process.exitCode = 1;
} finally {
  await world?.close();
}
