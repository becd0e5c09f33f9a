// A node that is lost with the pods on it, and comes back: no packet reaches them and none comes from them, nothing in them goes on, and
// for as long as the control plane has not missed the node's reports every Service still leads to them.
import { pause } from '../net.mjs';

const MISSED_MS = 50_000; // node-monitor-grace-period of Kubernetes 1.32 and later

/** Takes the node away that these pods are on, and waits until it has been missed; gives what starts it again. */
export async function loseNode(cluster, pods) {
  const client = { ip: cluster.clientIp, netPid: cluster.clientPid };
  const rejoin = await cluster.cut(pods, [...cluster.pods].filter((pod) => !pods.includes(pod)).concat(client));
  const containers = pods.flatMap((pod) => pod.containers.filter(({ init }) => !init).map((container) => ({ pod, container })));
  const thaws = [];
  for (const { pod, container } of containers) {
    container.stopProbes(); // no kubelet looks
    thaws.push(await pod.freeze(container.name));
  }
  await pause(MISSED_MS);
  for (const { pod, container } of containers) pod.setReady(container, false);
  return async () => {
    for (const { pod, container } of containers) pod.kill(container.name);
    for (const thaw of thaws) await thaw().catch(() => {}); // a process that was killed while it stood still ends now
    await rejoin();
  };
}
