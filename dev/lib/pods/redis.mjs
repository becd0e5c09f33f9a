// Questions to the Redis of the pods, asked in the pods themselves with the scripts and passwords they have.
import { until } from '../net.mjs';
import { runWithin } from './probes.mjs';

const FOUND_MS = 60_000;

const processOf = (pod, name) => pod.containers.find((container) => container.name === name).process;

/** A shell command beside a server or a Sentinel, with what the scripts share. */
export async function shell(pod, name, text) {
  const { code, output } = await runWithin(processOf(pod, name), ['sh', '-c', `. "$0"; ${text}`, '/etc/redis/scripts/common.sh'], { timeout: 10_000 });
  return code === 0 ? output.trim() : '';
}

/** The pod whose Redis is the master by the word of the Sentinels, and says so itself; and its replicas. */
export async function roles(cluster) {
  const pods = cluster.podsOf('redis');
  const find = async () => {
    const said = await Promise.all(pods.map((pod) => shell(pod, 'redis', 'role "$SELF"')));
    const masters = pods.filter((_, number) => said[number] === 'master');
    return masters.length === 1 && said.every(Boolean) && { master: masters[0], replicas: pods.filter((pod) => pod !== masters[0]) };
  };
  return until(FOUND_MS, find, () => 'Redis has not one master');
}

/** Asks a Sentinel to replace the master. */
export async function failover(cluster) {
  const [sentinel] = cluster.podsOf('redis-sentinel');
  const answer = await shell(sentinel, 'sentinel', 'administer "$SELF" sentinel failover sessions');
  if (answer !== 'OK') throw new Error(`the Sentinel refused a failover: ${answer}`);
}
