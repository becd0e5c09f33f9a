// The main packages of the product: each is a dependency of a part, and a file of that part uses it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { ROOT } from '../../stack.mjs';

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

const WORKS = [
  ['tonic', 'session-svc/src/grpc/service.rs'], // answers the session API
  ['prost', 'proto/src/gen/session.v1.rs'], // its messages
  ['axum', 'auth-edge/src/routes.rs'], // the edge's routes
  ['tokio', 'crates/chassis/src/runtime.rs'], // a runtime for each core
  ['openidconnect', 'crates/oidc/src/grants/authorization.rs'], // authorization requests
  ['deadpool-redis', 'session-svc/src/store/redis/source.rs'], // makes, checks and recycles connections
  ['serde', 'crates/oidc/src/tokens/provider_key.rs'], // claims and keys
  ['tracing-opentelemetry', 'crates/chassis/src/traces.rs'], // spans of the log become traces
  ['react', 'web/src/main.tsx'],
  ['react-dom', 'web/src/main.tsx'],
  ['grpc-web', 'web/src/api/transport.ts'],
  ['vite', 'web/session/vite.config.ts'],
];

for (const [name, file] of WORKS) {
  test(`${name} works in ${file}`, () => {
    const rust = file.endsWith('.rs');
    const part = rust ? file.split('/src/')[0] : 'web';
    assert.match(read(`${part}/${rust ? 'Cargo.toml' : 'package.json'}`), new RegExp(rust ? `^${name}(\\.workspace)? = ` : `"${name}": "`, 'm'));
    assert.match(read(file), new RegExp(rust ? `\\b${name.replaceAll('-', '_')}::` : `from ["']${name}(/[^"']*)?["']`));
  });
}
