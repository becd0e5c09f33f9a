// An application team writes the filter of its own host, and the platform team the rules of the edge. Envoy runs with
// the static equivalent of settings by which a team could try to escape its rule: those of an HTTPRoute, of a
// SecurityPolicy and of an EnvoyFilter. docs/kubernetes/application-teams.md says what binds a team.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { freePort, until } from '../../lib/net.mjs';
import { ROOT, startStack } from '../../stack.mjs';
import { Client, request } from './client.mjs';
import { Program } from './proxies.mjs';

const ENVOY = join(ROOT, '.cache/proxies/bin/envoy');
const TYPE = 'type.googleapis.com/envoy.extensions.';
const [SHOP_API, HR_API] = ['https://shop.example/api', 'https://hr.example/api'];

/** The platform's rules: the team's host is 127.0.0.1; `hr.example` and `open.example` belong to others. */
const RULES = `[[check]]
host = "127.0.0.1"
guard = "page"
resource = "${SHOP_API}"
headers = { Remote-User = "claim:sub" }
[[check]]
host = "127.0.0.1"
path = "/unnamed/*"
guard = "page"
[[check]]
host = "hr.example"
guard = "api"
resource = "${HR_API}"
headers = { Remote-User = "claim:sub", Remote-Email = "claim:email" }
[[check]]
host = "open.example"
guard = "none"
`;

const lies = (host) => ({
  host, ':authority': host, 'x-forwarded-host': host, 'x-forwarded-uri': '/', 'x-forwarded-proto': 'https', 'x-original-url': `https://${host}/`,
  path: '/', guard: 'none', resource: HR_API, audience: HR_API, scope: 'openid',
});
const asHeaders = (values) => Object.entries(values).filter(([name]) => !name.startsWith(':') && name !== 'host').map(([key, value]) => ({ header: { key, value } }));
const asMetadata = (values) => Object.entries(values).filter(([name]) => !name.startsWith(':') && name !== 'host').map(([key, value]) => ({ key, value }));

/** What a team writes, by name: fields of its Envoy route and its settings of the check. */
const FILTERS = Object.fromEntries([['plain', {}], ...['hr.example', 'open.example'].flatMap((host) => [
  [`parameters of ${host}`, { check: { context_extensions: lies(host) } }],
  [`headers of ${host}`, { fields: { request_headers_to_add: asHeaders(lies(host)) } }],
  [`address of ${host}`, { route: { host_rewrite_literal: host, prefix_rewrite: '/other/' } }],
  [`metadata of ${host}`, { check: { grpc_service: { envoy_grpc: { cluster_name: 'ext_authz', authority: host }, initial_metadata: asMetadata(lies(host)) } } }],
])]);

const cluster = (name, port, isHttp2) => ({
  name, connect_timeout: '1s',
  load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } }] }] },
  ...(isHttp2 && { typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': { '@type': `${TYPE}upstreams.http.v3.HttpProtocolOptions`, explicit_http_config: { http2_protocol_options: {} } } } }),
});
const perRoute = (value) => ({ 'envoy.filters.http.ext_authz': { '@type': `${TYPE}filters.http.ext_authz.v3.ExtAuthzPerRoute`, ...value } });

/** Envoy's configuration. The header `x-filter` of a request selects the team's filter. */
const envoy = (ports) => JSON.stringify({ static_resources: {
  listeners: [{ address: { socket_address: { address: '127.0.0.1', port_value: ports.front } }, filter_chains: [{ filters: [{ name: 'http', typed_config: {
    '@type': `${TYPE}filters.network.http_connection_manager.v3.HttpConnectionManager`, stat_prefix: 'public', use_remote_address: true,
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [
      { match: { prefix: '/api/auth/' }, route: { cluster: 'edge' }, typed_per_filter_config: perRoute({ disabled: true }) },
      ...Object.entries(FILTERS).map(([name, { check, fields, route }]) => ({
        match: { prefix: '/', headers: [{ name: 'x-filter', string_match: { exact: name } }] },
        route: { cluster: 'application', ...route }, ...fields, ...(check && { typed_per_filter_config: perRoute({ check_settings: check }) }),
      })),
    ] }] },
    http_filters: [
      { name: 'envoy.filters.http.ext_authz', typed_config: { '@type': `${TYPE}filters.http.ext_authz.v3.ExtAuthz`, transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'ext_authz' }, timeout: '5s' } } },
      { name: 'envoy.filters.http.router', typed_config: { '@type': `${TYPE}filters.http.router.v3.Router` } },
    ],
  } }] }] }],
  clusters: [cluster('edge', ports.edge), cluster('ext_authz', ports.extAuthz, true), cluster('application', ports.application)],
} });

const audienceOf = (authorization) => JSON.parse(Buffer.from(authorization.split('.')[1], 'base64url')).aud;

for (const sendsTokens of [false, true]) {
  describe(`a team's filter, ${sendsTokens ? 'with' : 'without'} access tokens in checks`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'vestibule-filters-'));
    const client = new Client();
    let [received, application, stack, proxy, url] = [0];

    before(async () => {
      application = http.createServer((asked, answer) => {
        received += 1;
        answer.end(JSON.stringify(asked.headers));
      });
      await new Promise((resolve) => { application.listen(0, '127.0.0.1', resolve); });
      const [front, extAuthz] = [await freePort(), await freePort()];
      url = `http://127.0.0.1:${front}`;
      const [routes, file] = [join(folder, 'routes.toml'), join(folder, 'envoy.json')];
      writeFileSync(routes, RULES);
      const tokens = { OIDC_API_TOKENS: 'refresh', OIDC_RESOURCE: `${SHOP_API},${HR_API}`, OIDC_SCOPE: 'openid profile email' };
      stack = await startStack({ store: 'memory:', routes, publicUrl: url, resources: [SHOP_API, HR_API], sessionEnv: tokens, edgeEnv: { ...tokens, EDGE_EXT_AUTHZ_LISTEN: `127.0.0.1:${extAuthz}`, EDGE_CHECK_AUTHORIZATION: String(sendsTokens) } });
      writeFileSync(file, envoy({ front, extAuthz, edge: Number(new URL(stack.edgeUrls[0]).port), application: application.address().port }));
      proxy = await new Program(ENVOY, ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn', '-c', file], { cwd: folder }).listening(front);
      await client.signIn(stack);
    });
    after(async () => {
      await proxy?.stop();
      await stack?.stop();
      application.closeAllConnections();
      application.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const ask = async (filter, { path = '/', host } = {}) => {
      const answer = await client.fetch(`${url}${path}`, { headers: { 'x-filter': filter, ...(host && { host }) } });
      assert.equal(answer.status, 200, `${filter}: ${answer.text} ${proxy.log}`);
      return answer.json();
    };

    test('the rules of the other hosts are there', async () => {
      assert.match((await ask('plain', { host: 'hr.example' }))['remote-email'], /@/);
      assert.equal((await request(url, { headers: { 'x-filter': 'plain', host: 'open.example' } })).status, 200);
    });

    for (const filter of Object.keys(FILTERS)) {
      test(`${filter}: a stranger gets 401, a user the headers of the team's rule`, async () => {
        const before = received;
        const stranger = await request(url, { headers: { accept: 'application/json', 'x-filter': filter } });
        assert.equal(stranger.status, 401, stranger.text);
        assert.equal(received, before);
        const headers = await ask(filter);
        assert.equal(headers['remote-user'], headers['x-auth-subject']);
        assert.equal(headers['remote-email'], undefined);
        assert.equal(headers.authorization && audienceOf(headers.authorization), sendsTokens ? SHOP_API : undefined);
      });
    }

    if (sendsTokens) {
      test('a filter chooses the API of the token only where the rule names no API', async () => {
        assert.equal(audienceOf((await ask('parameters of hr.example', { path: '/unnamed/' })).authorization), HR_API);
      });
    }
  });
}

/** Middlewares of a team before the check, by name: headers of the request, and whether the check trusts the client. */
const MIDDLEWARES = {
  'the host': [{ Host: 'hr.example' }, false],
  'the original address': [{ 'X-Original-URL': 'https://hr.example/' }, false],
  'a trusted header': [{ 'X-Forwarded-Host': 'hr.example' }, true],
};

const traefik = (edge, application, headers, trusts) => ({ http: {
  middlewares: {
    team: { headers: { customRequestHeaders: headers } },
    vestibule: { forwardAuth: { address: `${edge}/api/auth/check`, trustForwardHeader: trusts, authResponseHeadersRegex: '(?i)^(X-Auth-|Remote-)' } },
  },
  routers: {
    'sign-in': { rule: 'PathPrefix(`/api/auth/`)', priority: 100, service: 'edge' },
    application: { rule: 'PathPrefix(`/`)', middlewares: ['team', 'vestibule'], service: 'application' },
  },
  services: { edge: { loadBalancer: { servers: [{ url: edge }] } }, application: { loadBalancer: { servers: [{ url: application }] } } },
} });

describe('Traefik does not bind a team that writes Middlewares, as docs/kubernetes/traefik.md warns', () => {
  for (const [name, [headers, trusts]] of Object.entries(MIDDLEWARES)) {
    test(`by ${name} it gets the headers of another rule`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'vestibule-middlewares-'));
      const application = http.createServer((asked, answer) => answer.end(JSON.stringify(asked.headers)));
      await new Promise((resolve) => { application.listen(0, '127.0.0.1', resolve); });
      const front = await freePort();
      const url = `http://127.0.0.1:${front}`;
      const [routes, dynamic, file] = ['routes.toml', 'dynamic.yml', 'traefik.yml'].map((one) => join(folder, one));
      writeFileSync(routes, RULES.replace(/^resource.*\n/gm, '')); // this provider issues no tokens for an API
      let [stack, proxy] = [];
      try {
        stack = await startStack({ store: 'memory:', routes, publicUrl: url, edgeEnv: { EDGE_TRUSTED_PROXIES: '127.0.0.1' } });
        writeFileSync(dynamic, JSON.stringify(traefik(stack.edgeUrls[0], `http://127.0.0.1:${application.address().port}`, headers, trusts)));
        writeFileSync(file, JSON.stringify({ entryPoints: { web: { address: `127.0.0.1:${front}` } }, providers: { file: { filename: dynamic } } }));
        proxy = await new Program(join(ROOT, '.cache/proxies/bin/traefik'), [`--configFile=${file}`], { cwd: folder }).listening(front);
        await until(20_000, async () => (await request(url)).status !== 404, () => `Traefik knows no way: ${proxy.log}`);
        const client = new Client();
        await client.signIn(stack);
        assert.match((await client.fetch(`${url}/`)).json()['remote-email'], /@/);
      } finally {
        await proxy?.stop();
        await stack?.stop();
        application.closeAllConnections();
        application.close();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
});
