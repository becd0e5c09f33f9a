// What the services have measured.
import { probe } from '../../lib/net.mjs';

/** The sum over both session services of the samples whose name and labels begin like this. */
export async function measured(stack, beginning) {
  const pages = await Promise.all(['session', 'session-2'].map((name) => probe(`${stack.adminUrls[name]}/metrics`)));
  const samples = pages.flatMap(({ body }) => body.split('\n')).filter((line) => line.startsWith(beginning));
  return samples.reduce((sum, line) => sum + Number(line.split(' ').pop()), 0);
}
