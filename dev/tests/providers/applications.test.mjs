// Real applications behind the edge and behind each proxy that asks it, configured as docs/integrations says.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { Client, NAVIGATION, request } from '../product/client.mjs';
import { START } from '../product/proxies.mjs';
import { APPLICATIONS } from './applications/applications.mjs';
import { checks, routes } from './documents.mjs';

const LIMIT_MS = 120_000; // an application that never responds fails its test and does not block the suite
const KNOWN_MS = 20_000; // until a proxy has loaded its routes
const FRONTS = { edge: 'the edge', nginx: 'nginx', caddy: 'Caddy', traefik: 'Traefik' };

const isSentToSignIn = ({ status, headers, url }) => [302, 307].includes(status) && new URL(headers.get('location'), url).pathname === '/api/auth/login';

/** Starts the edge and its proxy in front of the application: {url, stop}. */
async function startFront(name, heading, application) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-front-'));
  const cleanup = () => rmSync(folder, { recursive: true, force: true });
  const file = join(folder, 'routes.toml');
  writeFileSync(file, name === 'edge' ? routes(heading, `http://127.0.0.1:${application}`) : checks(heading));
  if (name === 'edge') {
    const stack = await startStack({ store: 'memory:', routes: file });
    return { stack, url: stack.edgeUrl, stop: async () => { await stack.stop(); cleanup(); } };
  }
  const [front, edge] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${front}`;
  const stack = await startStack({ store: 'memory:', routes: file, publicUrl: url, ports: { edge }, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1' } });
  const proxy = await START[name](folder, { front, edge, application }).listening(front);
  await until(KNOWN_MS, async () => (await request(`${url}/`)).status !== 404, () => `${name} knows no way: ${proxy.log}`);
  return { stack, url, stop: async () => { await proxy.stop(); await stack.stop(); cleanup(); } };
}

for (const [name, application] of Object.entries(APPLICATIONS)) {
  describe(name, () => {
    const results = {};
    let app;
    before(async () => { app = await application.start(); });
    after(async () => {
      await app?.stop();
      if (!process.env.PROVIDERS_RESULTS) return;
      mkdirSync(process.env.PROVIDERS_RESULTS, { recursive: true });
      writeFileSync(join(process.env.PROVIDERS_RESULTS, `${name}.json`), JSON.stringify({ kind: 'Application', name: application.title ?? name, version: application.version, columns: FRONTS, results }));
    });

    for (const [front, title] of Object.entries(FRONTS)) {
      test(`${name} behind ${title}`, { timeout: LIMIT_MS }, async () => {
        const exception = application.exceptions?.[front];
        const { stack, url, stop } = await startFront(front, name, app.port);
        let failure;
        try {
          const stranger = await request(`${url}${application.entrance}`, { headers: NAVIGATION });
          assert.ok(isSentToSignIn(stranger), `a stranger is sent to sign in: ${stranger.status}`);
          assert.equal((await request(`${url}${application.entrance}`, { headers: { accept: 'application/json' } })).status, 401, 'a stranger\'s script');
          const person = new Client();
          const landed = await person.signIn(stack, { login: `/api/auth/login?returnTo=${encodeURIComponent(application.entrance)}` });
          assert.equal(landed.headers.get('location'), `${url}${application.entrance}`);
          await application.use(person, url, front);
          await person.follow(`${url}/api/auth/logout`);
          assert.ok(isSentToSignIn(await person.navigate(`${url}${application.entrance}`)), 'who signed out is a stranger');
        } catch (error) {
          failure = error;
        } finally {
          await stop();
        }
        if (!exception) {
          results[front] = { status: failure ? 'fails' : 'works' };
          if (failure) throw failure;
          return;
        }
        assert.ok(failure, `${name} works behind ${title}: the exceptions and docs/providers.md say that it does not`);
        assert.match(failure.message, exception.symptom);
        results[front] = { status: 'fails', fault: exception.fault, says: exception.says };
      });
    }
  });
}
