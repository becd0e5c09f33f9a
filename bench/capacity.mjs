// `make capacity SESSIONS=1000000 REQUESTS=5000`: how many machines, how much memory, CPU and network so many sessions and requests a second
// want, and what a failover costs. Arithmetic from measured constants (capacity/constants.mjs); a test holds it against a real Redis.
//
//   node bench/capacity.mjs 1000000 5000 [nodeGib=32 …]   --constants prints these with what measured them, --json all figures
import { parseArgs } from 'node:util';

import { ASSUMED, CONSTANTS, values } from './capacity/constants.mjs';
import { capacity } from './capacity/model.mjs';

const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: { constants: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } } });
const numbers = positionals.filter((text) => /^[\d_,]+$/.test(text)).map((text) => Number(text.replaceAll(/[_,]/g, '')));
const [sessions = 1_000_000, requests = Math.ceil(sessions / 200)] = numbers;
const given = Object.fromEntries(positionals.filter((text) => text.includes('=')).map((text) => text.split('=')));
const say = (text) => process.stdout.write(`${text}\n`);
const count = (value) => Math.round(value).toLocaleString('en');
const rate = (value) => (value < 10 ? value.toFixed(1) : count(value));
const size = (bytes) => (bytes >= 1024 ** 3 ? `${(bytes / 1024 ** 3).toFixed(1)} GiB` : `${(bytes / 1024 ** 2).toFixed(0)} MiB`);
const flow = (bytes) => `${((bytes * 8) / 1e6).toFixed(1)} Mbit/s`;

if (flags.constants) {
  for (const [name, { value, unit, of, by }] of Object.entries(CONSTANTS)) say(`${name.padEnd(14)} ${String(value).padStart(9)} ${unit.padEnd(5)} ${of} (${by})`);
  for (const [name, { value, of }] of Object.entries(ASSUMED)) say(`${name.padEnd(14)} ${String(given[name] ?? value).padStart(9)}       ${of}`);
  process.exit(0);
}

const found = capacity({ sessions, requests, constants: values(CONSTANTS), assumed: values(ASSUMED, given) });
if (flags.json) {
  say(JSON.stringify(found));
  process.exit(0);
}
const { rate: each, network, failover } = found;
const rows = [
  ['sessions alive, requests a second', `${count(sessions)}, ${count(requests)}`],
  ['of these people there at once', count(each.there)],
  ['sign-ins, reads, rolls, refreshes, endings a second', [each.created, each.asked, each.rolled, each.refreshed, each.ended].map(rate).join(', ')],
  ['a session in Redis', `${count(found.perSession)} bytes: record ${count(found.bytes.records / sessions)}, lists ${count(found.bytes.lists / sessions)}, the rest ${count((found.bytes.all - found.bytes.records - found.bytes.lists) / sessions)}`],
  ['Redis', found.masters === 1 ? `one master behind Sentinels, ${found.replicasOfEach} replicas` : `a cluster of ${found.masters} masters, ${found.replicasOfEach} replicas each: ${found.masters * (1 + found.replicasOfEach)} nodes`],
  ['memory of a node', `${size(found.nodeBytes)} of sessions; ${size(2 * found.nodeBytes / Number(given.full ?? ASSUMED.full.value))} for its machine`],
  ['memory of all masters', size(found.bytes.all)],
  ['CPU of all masters', `${found.redisCores.toFixed(2)} cores, of ${found.masters}`],
  ['session services', String(found.services)],
  ['edges', String(found.edges)],
  ['network: Redis to session services, to replicas, session services to edges', [network.toServices, network.toReplicas, network.toEdges].map(flow).join(', ')],
  ['events told to edges, each by every session service', `${rate(found.told)} a second, ${found.tellingCores.toFixed(2)} cores of each session service`],
  ['a failover', `${(failover.share * 100).toFixed(0)} % of sessions are not read for some ${CONSTANTS.failoverSecs.value} s (${count(failover.refused)} reads refused); edges remember nothing meanwhile; ${size(failover.copied)} are copied to a new replica`],
];
const width = Math.max(...rows.map(([what]) => what.length));
for (const [what, value] of rows) say(`${what.padEnd(width)}  ${value}`);
