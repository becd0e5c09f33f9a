// Tests HTTP/2 proxies between the edge and the session service, as a mesh or an operator's balancer puts them there.
// The event stream stays open through them, and the edge's pings to a silent session service offend none of them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { freePort, pause, until } from '../../lib/net.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { Client } from './client.mjs';
import { field, open } from './grpc.mjs';
import { Program } from './proxies.mjs';

const HEARD_MS = 1_000;
const STEADY_MS = 3_000; // ten heartbeats
const QUIET_MS = 6_000; // a dozen pings; some servers close after three pings within minutes
const BACK_MS = 10_000;
const ENVOY = join(ROOT, '.cache/proxies/bin/envoy');

/** How to configure and start each proxy so that `port` leads to the session service. */
const PROXIES = {
  envoy: {
    file: (port, to) => JSON.stringify({
      static_resources: {
        listeners: [{
          address: { socket_address: { address: '127.0.0.1', port_value: port } },
          filter_chains: [{ filters: [{ name: 'http', typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
            stat_prefix: 'sessions',
            route_config: { virtual_hosts: [{ name: 'sessions', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'sessions', timeout: '0s' } }] }] },
            http_filters: [{ name: 'router', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' } }],
          } }] }],
        }],
        clusters: [{
          name: 'sessions', type: 'STATIC',
          load_assignment: { cluster_name: 'sessions', endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: to } } } }] }] },
          typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
            '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions', explicit_http_config: { http2_protocol_options: {} },
          } },
        }],
      },
    }),
    start: (file, folder) => new Program(ENVOY, ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn', '-c', file], { cwd: folder }),
  },
  nginx: {
    file: (port, to) => `daemon off; pid nginx.pid; error_log stderr; events {}
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {
    listen 127.0.0.1:${port} http2;
    location / { grpc_pass grpc://127.0.0.1:${to}; }
  }
}
`,
    start: (file, folder) => new Program('nginx', ['-p', folder, '-e', 'stderr', '-c', file]),
  },
  haproxy: {
    file: (port, to) => `defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend mesh
  bind 127.0.0.1:${port} proto h2
  default_backend sessions
backend sessions
  server session-svc 127.0.0.1:${to} proto h2
`,
    start: (file) => new Program('haproxy', ['-db', '-f', file]),
  },
  caddy: {
    file: (port, to) => `{
	admin off
	servers {
		protocols h1 h2c
	}
}
http://127.0.0.1:${port} {
	reverse_proxy h2c://127.0.0.1:${to} {
		flush_interval -1
	}
}
`,
    start: (file, folder) => new Program('caddy', ['run', '--adapter', 'caddyfile', '--config', file], { env: { ...process.env, HOME: folder } }),
  },
};

for (const [name, { file, start }] of Object.entries(PROXIES)) {
  test(`${name} between edge and session service: the edge receives endings, and waits for a silent service`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-mesh-'));
    const [port, session] = [await freePort(), await freePort()];
    const settings = join(folder, 'settings');
    writeFileSync(settings, file(port, session));
    const proxy = await start(settings, folder).listening(port);
    let stack;
    try {
      stack = await startStack({ ports: { session }, edgeEnv: { EDGE_SESSION_SVC_URL: `http://127.0.0.1:${port}`, EDGE_SESSION_CACHE_SECS: '60' } });
      const [person, other] = [new Client(), new Client()];
      for (const client of [person, other]) {
        await client.signIn(stack);
        assert.equal((await client.me(stack)).status, 200);
      }

      // The edge caches a session for a minute but rejects it at once: the event arrived over the stream.
      const id = other.sessionCookie(stack)[1].split('.')[0];
      assert.equal((await open(stack.sessionUrls[0], 'EndSession', field(1, id)).ended).status, 0);
      await until(HEARD_MS, async () => (await other.me(stack)).status === 204, () => `an ended session is still served after ${HEARD_MS} ms`);
      await pause(STEADY_MS);
      assert.doesNotMatch(stack.logs('edge'), /cannot receive from/, 'the stream stays open');
      assert.equal((await person.me(stack)).status, 200);

      process.kill(stack.pid('session'), 'SIGSTOP');
      await pause(QUIET_MS);
      process.kill(stack.pid('session'), 'SIGCONT');
      await until(BACK_MS, async () => (await person.me(stack)).status === 200, () => `not signed in after the session service came back: ${proxy.log}`);
      assert.doesNotMatch(stack.logs('edge'), /ENHANCE_YOUR_CALM|too_many_pings/i);
    } finally {
      await stack?.stop();
      await proxy.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
