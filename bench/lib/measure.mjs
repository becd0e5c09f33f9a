// Tools of the benchmark: CPU time and memory of processes, load generators, medians.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Problem } from '../../dev/lib/build.mjs';

const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;

/** User and system time of a process and all its threads so far, in microseconds. */
export function cpuMicros(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6;
}

/** Resident memory of a process, in MiB. */
export const residentMiB = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

export const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** The value that this part (0 to 1) of a list does not exceed. */
export const quantile = (list, part) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * part))];

/** A duration of wrk (850.00us, 3.02ms, 1.20s) in milliseconds. */
function milliseconds(text) {
  const [, number, unit] = /^([\d.]+)(us|ms|s)$/.exec(text);
  return Number(number) * { us: 0.001, ms: 1, s: 1000 }[unit];
}

/** Runs a program to its end. Returns its output and exit code. */
export function output(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => { stdout += chunk; });
    child.on('error', reject);
    child.on('close', (status) => resolve({ stdout, status }));
  });
}

/** Full load on one URL. `pids` is [[name, pid], …]; divides their CPU time by the answered requests. */
export async function saturate({ url, headers = {}, pids, seconds, connections = 16 }) {
  const before = pids.map(([, pid]) => cpuMicros(pid));
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  // Not synchronous: this process also reads the output of the services, which block if it does not.
  const { stdout, status } = await output('wrk', ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '--latency', ...given, url]);
  const after = pids.map(([, pid]) => cpuMicros(pid));
  if (status !== 0) throw new Problem(`wrk failed: ${stdout}`);
  if (/Non-2xx/.test(stdout)) throw new Problem(`${url} answered with errors:\n${stdout}`);
  const requests = Number(/(\d+) requests in/.exec(stdout)[1]);
  const each = after.map((value, at) => (value - before[at]) / requests);
  return {
    micros: each.reduce((sum, value) => sum + value, 0),
    by: Object.fromEntries(pids.map(([name], at) => [name, each[at]])),
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)[1]),
    p99: milliseconds(/^\s*99%\s+(\S+)/m.exec(stdout)[1]), // anchored to the line: other figures may end in 99% too
  };
}

/** h2load with a log of every request: each latency in milliseconds, and the CPU time of `pids` per request. */
export async function h2load({ url, headers = {}, pids = [], count, rate, seconds, clients = 16, streams = 1, http1 = false, data }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-h2load-'));
  const log = join(folder, 'requests');
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const amount = rate
    ? ['-D', String(seconds), '--rps', String(rate / clients)]
    : ['-n', String(count)];
  const args = ['-t', '1', '-c', String(clients), '-m', String(streams), ...amount, ...(http1 ? ['--h1'] : []), ...(data ? ['-d', data] : []), '--log-file', log, ...given, url];
  const before = pids.map(([, pid]) => cpuMicros(pid));
  try {
    const { stdout, status } = await output('h2load', args);
    if (status !== 0) throw new Problem(`h2load failed: ${stdout}`);
    const after = pids.map(([, pid]) => cpuMicros(pid));
    const requests = readFileSync(log, 'utf8').trim().split('\n').map((line) => line.split('\t').map(Number));
    const refused = requests.filter(([, status]) => status !== 200).length;
    if (refused > 0 || requests.length === 0) throw new Problem(`${refused} of ${requests.length} answers of ${url} were errors:\n${stdout}`);
    const each = after.map((value, at) => (value - before[at]) / requests.length);
    return {
      took: requests.map(([, , micros]) => micros / 1000),
      requests: requests.length,
      micros: each.reduce((sum, value) => sum + value, 0),
      by: Object.fromEntries(pids.map(([name], at) => [name, each[at]])),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Median, smallest and largest of a figure over rounds; a row shows `digits` after the decimal point. */
export const spread = (values, digits = 1) => ({ median: median(values), min: Math.min(...values), max: Math.max(...values), rounds: values.length, digits });

/** A figure that is the same in every round. */
export const fixed = (value, digits = 0) => ({ median: value, digits });

/** The text of a row's figure. */
export function shown({ median: middle, min, max, digits }) {
  const text = (value) => value.toFixed(digits);
  return min === undefined || min === max ? text(middle) : `${text(middle)} (${text(min)} to ${text(max)})`;
}

/** Medians of the shares of each process, by its name. */
export const shares = (results) => Object.fromEntries(Object.keys(results[0].by).map((name) => [name, median(results.map(({ by }) => by[name]))]));
