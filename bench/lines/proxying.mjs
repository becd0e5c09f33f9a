// P3: a guarded request that the edge passes on to a small upstream with the access token, next to nginx without any
// guard: with its plain directive, and with kept connections.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { saturate, shares, spread } from '../lib/measure.mjs';
import { releaseStack, serving, signedIn, startBound, startNginx } from '../lib/services.mjs';

export async function proxying({ rounds, seconds, say, cleanup }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-bench-'));
  const upstream = cleanup(await startBound(300));
  const nginx = cleanup(await startNginx(folder, upstream.url));
  const kept = cleanup(await startNginx(folder, upstream.url, { kept: true }));
  const routes = join(folder, 'routes.toml');
  writeFileSync(routes, `[[route]]\npath = "/api/orders/*"\nguard = "api"\nupstream = "${upstream.url.replace(/\/$/, '')}"\naccess_token = true\n`);
  const stack = cleanup(await releaseStack({ store: 'redis', routes, accessTokenTtl: 3600 }));
  const { cookie } = await signedIn(stack);
  const cases = [
    { id: 'P3', bound: 'nginx', work: 'guarded request passed on, access token attached', url: `${stack.edgeUrl}/api/orders/1`, headers: { cookie }, pids: serving(stack), results: [] },
    { id: 'nginx', work: 'the same upstream behind plain proxy_pass', headers: {}, ...nginx, results: [] },
    { id: 'nginx kept', work: 'the same with connections to the upstream kept', headers: {}, ...kept, results: [] },
  ];
  for (const one of cases) await saturate({ ...one, seconds: 1 });
  for (let round = 1; round <= rounds; round += 1) {
    for (const one of cases) {
      one.results.push(await saturate({ ...one, seconds }));
      say(`round ${round} ${one.id}: ${one.results.at(-1).micros.toFixed(1)} µs`);
    }
  }
  return { rows: cases.map(({ id, bound, work, results }) => ({ id, bound, work, unit: 'CPU µs', ...spread(results.map(({ micros }) => micros)), by: shares(results) })) };
}
