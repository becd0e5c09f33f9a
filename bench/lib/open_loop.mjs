// Load at a stated rate that waits for no answer. A request has a time at which it is due, on whatever connection is free; how
// long it took counts from there, so that those that waited because others were slow are not left out (which closed-loop
// generators do: coordinated omission). oha draws the schedule and logs every request; what is asked for is a number of them,
// so that the last and slowest are waited for too.
import { cargoTool } from '../../dev/lib/tools.mjs';
import { Problem } from '../../dev/lib/build.mjs';
import { output, quantile } from './measure.mjs';

/** Connections kept open; more than are ever in use below saturation. */
const CONNECTIONS = 64;
/** Seconds before those that count. */
const WARM_SECS = 1;
/** Of the rate that was asked for, the part that has to be reached: below it, what answers is at its limit. */
const REACHED = 0.97;

/** The load generator's path, installed where needed. */
export const openLoopTool = (say) => cargoTool('oha', say);

/**
 * Milliseconds of each request, in no order, the rate that was reached and whether what answers kept up with what was asked. The
 * first second opens the connections and is not counted.
 */
export async function openLoop({ program, url, headers = {}, rate, seconds }) {
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const count = Math.round(rate * (seconds + WARM_SECS));
  const args = ['--no-tui', '-n', String(count), '-c', String(CONNECTIONS), '-q', String(rate), '--latency-correction', '--redirect', '0', '--output-format', 'csv', ...given, url];
  const { stdout, status } = await output(program, args);
  const [head, ...lines] = stdout.trim().split('\n');
  const [start, duration, code] = ['request-start', 'request-duration', 'status'].map((name) => head.split(',').indexOf(name));
  const requests = lines.map((line) => line.split(','));
  const answered = requests.filter((request) => request[code] === '200').length;
  if (status !== 0 || answered !== count) throw new Problem(`${answered} of ${count} requests of ${url} at ${rate}/s were answered:\n${stdout.slice(0, 400)}`);
  const counted = requests.filter((request) => Number(request[start]) >= WARM_SECS);
  const reached = counted.length / (Number(counted.at(-1)[start]) - WARM_SECS);
  return { took: counted.map((request) => Number(request[duration]) * 1000), reached, keptUp: reached >= rate * REACHED };
}

/** The parts of a set of latencies that a report tells, in milliseconds. */
export const percentiles = (took) => ({ p50: quantile(took, 0.5), p95: quantile(took, 0.95), p99: quantile(took, 0.99), p999: quantile(took, 0.999), max: Math.max(...took) });
