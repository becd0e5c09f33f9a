// Every client of the product agrees on keys with a real TLS server: one without ML-KEM, one with both, and one that
// accepts hybrid keys only. crates/chassis tests the listeners.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { issue, makeAuthority } from '../../lib/authority.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, until } from '../../lib/net.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { NAVIGATION, request } from './client.mjs';
import { Program } from './proxies.mjs';

const [CLASSICAL, HYBRID] = ['X25519', 'X25519MLKEM768'];
const SERVERS = {
  'a server without ML-KEM': { accepts: [CLASSICAL], agreed: CLASSICAL },
  'a server with both': { accepts: [HYBRID, CLASSICAL], agreed: HYBRID },
  'a server of hybrid keys only': { accepts: [HYBRID], agreed: HYBRID },
};
const ALPN = { provider: ['http/1.1'], redis: [], upstream: ['http/1.1'], session: ['h2'] };
/** The provider names its endpoints by https only if it has TLS itself. */
const OVER_TLS = { transport_socket: { name: 'tls', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext' } } };
const CONNECTED_MS = 20_000;

/** Envoy ends TLS with these groups in front of each server: `{name: {front, to}}`. */
function envoy(folder, admin, fronts, groups) {
  const address = (port) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  const file = join(folder, 'envoy.json');
  writeFileSync(file, JSON.stringify({
    admin: { address: address(admin) },
    static_resources: {
      listeners: Object.entries(fronts).map(([name, { front }]) => ({
        stat_prefix: name,
        address: address(front),
        filter_chains: [{
          transport_socket: { name: 'tls', typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
            common_tls_context: {
              tls_params: { ecdh_curves: groups },
              tls_certificates: [{ certificate_chain: { filename: join(folder, 'tls/tls.crt') }, private_key: { filename: join(folder, 'tls/tls.key') } }],
              alpn_protocols: ALPN[name],
            },
          } },
          filters: [{ name: 'tcp', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy', stat_prefix: name, cluster: name } }],
        }],
      })),
      clusters: Object.entries(fronts).map(([name, { to }]) => ({
        name, type: 'STATIC', ...(name === 'provider' && OVER_TLS), load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: address(to) } }] }] },
      })),
    },
  }));
  return new Program(join(ROOT, '.cache/proxies/bin/envoy'), ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn', '-c', file], { cwd: folder });
}

for (const [title, { accepts, agreed }] of Object.entries(SERVERS)) {
  test(`provider, Redis, upstream and session service are reached behind ${title}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-keys-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const authority = makeAuthority(folder);
    issue(authority, join(folder, 'tls'), ['127.0.0.1'], ['serverAuth']);
    const fronts = {};
    for (const name of Object.keys(ALPN)) fronts[name] = { front: await freePort(), to: await freePort() };
    const [admin, edge] = [await freePort(), await freePort()];
    const at = (name) => `127.0.0.1:${fronts[name].front}`;

    const upstream = http.createServer((_, answer) => answer.end('hello'));
    await new Promise((resolve) => { upstream.listen(fronts.upstream.to, '127.0.0.1', resolve); });
    t.after(() => upstream.close());
    const proxy = await envoy(folder, admin, fronts, accepts).listening(fronts.session.front);
    t.after(() => proxy.stop());
    const redis = new Child('redis', 'redis-server', ['--port', String(fronts.redis.to), '--bind', '127.0.0.1', '--save', '', '--maxmemory-policy', 'noeviction']);
    t.after(() => redis.stop());
    const issuer = `https://${at('provider')}`;
    const provider = new Child('idp', process.execPath, [
      join(ROOT, 'dev/idp/server.mjs'), '--port', String(fronts.provider.to), '--issuer', issuer, '--client-secret=only-for-the-length-of-this-one-test',
      '--redirect-uri', `http://127.0.0.1:${edge}/api/auth/callback`, '--state', join(folder, 'idp.json'),
      '--tls-cert-file', join(folder, 'tls/tls.crt'), '--tls-key-file', join(folder, 'tls/tls.key'),
    ]);
    t.after(() => provider.stop());
    await until(CONNECTED_MS, () => provider.output.includes(issuer), () => provider.tail());

    const routes = join(folder, 'routes.toml');
    writeFileSync(routes, `[[route]]\npath = "/*"\nguard = "none"\nupstream = "https://${at('upstream')}"\n`);
    const stack = await startStack({
      store: `rediss://${at('redis')}?ca_file=${authority.certificate}`,
      routes,
      ports: { edge, session: fronts.session.to },
      provider: { OIDC_ISSUER_URL: issuer, OIDC_CLIENT_ID: 'vestibule-dev', OIDC_CLIENT_SECRET: 'only-for-the-length-of-this-one-test', OIDC_CA_FILE: authority.certificate },
      edgeEnv: { EDGE_UPSTREAM_CA_FILE: authority.certificate, EDGE_SESSION_SVC_CA_FILE: authority.certificate, EDGE_SESSION_SVC_URL: `https://${at('session')}` },
    });
    t.after(() => stack.stop());

    assert.equal((await request(`${stack.edgeUrl}/`)).text, 'hello');
    const login = await request(`${stack.edgeUrl}/api/auth/login`, { headers: NAVIGATION });
    assert.equal(login.status, 302, login.text);
    assert.equal(new URL(login.headers.get('location')).origin, issuer);
    for (const name of Object.keys(fronts)) {
      const counted = async () => (await request(`http://127.0.0.1:${admin}/stats?filter=^listener.${name}.ssl.curves`)).text;
      const groups = await until(CONNECTED_MS, async () => [...(await counted()).matchAll(/ssl\.curves\.(\S+): [1-9]/g)].map(([, group]) => group), () => `${name} is not connected`);
      assert.deepEqual(groups, [agreed], name);
    }
  });
}
