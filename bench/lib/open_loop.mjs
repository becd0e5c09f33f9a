// Load at a fixed rate that does not wait for answers. Each request has a due time and takes any free connection; its
// latency counts from its due time. So requests that wait behind slow ones count too, which closed-loop generators
// leave out (coordinated omission). oha schedules and logs every request; it gets a number of requests and no
// duration, so that it waits for the slowest too.
import { cargoTool } from '../../dev/lib/tools.mjs';
import { Problem } from '../../dev/lib/build.mjs';
import { output, quantile } from './measure.mjs';

/** Open connections; below saturation some are always free. */
const CONNECTIONS = 64;
/** Seconds of warm-up, which do not count. */
const WARM_SECS = 1;
/** Share of the requested rate that the server has to reach to keep up. */
const REACHED = 0.97;

/** Installs the load generator if needed, and returns its path. */
export const openLoopTool = (say) => cargoTool('oha', say);

/**
 * Milliseconds of each request, in no order, the reached rate, and whether the server kept up. The first second
 * opens the connections and does not count.
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

/** The percentiles of latencies for a report, in milliseconds. */
export const percentiles = (took) => ({ p50: quantile(took, 0.5), p95: quantile(took, 0.95), p99: quantile(took, 0.99), p999: quantile(took, 0.999), max: Math.max(...took) });
