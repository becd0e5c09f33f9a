// The packages that the product is built on: each is a dependency of a part, and a file of that part uses it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { ROOT } from '../../stack.mjs';

const read = (...path) => readFileSync(join(ROOT, ...path), 'utf8');

/** Crate, part, a file where it does its work. */
const CRATES = [
  ['tonic', 'session-svc', 'grpc/service.rs'], // answers the session API
  ['tonic', 'proto', 'client/call.rs'], // calls it
  ['prost', 'proto', 'gen/session.v1.rs'], // its messages
  ['axum', 'auth-edge', 'routes.rs'], // the edge's routes
  ['tokio', 'crates/chassis', 'runtime.rs'], // a runtime for each core
  ['openidconnect', 'crates/oidc', 'grants/authorization.rs'], // authorization requests
  ['openidconnect', 'crates/oidc', 'tokens/key_set.rs'], // the provider's keys
  ['openidconnect', 'crates/oidc', 'logout/end_session.rs'], // sign-out at the provider
  ['deadpool-redis', 'session-svc', 'store/redis/source.rs'], // makes, checks and recycles connections
  ['serde', 'crates/oidc', 'tokens/provider_key.rs'], // claims and keys
  ['tracing-opentelemetry', 'crates/chassis', 'traces.rs'], // spans of the log become traces
];

/** Package, the file where it does its work. */
const PACKAGES = [
  ['react', 'web/src/main.tsx'],
  ['react-dom', 'web/src/main.tsx'],
  ['grpc-web', 'web/src/api/transport.ts'],
  ['vite', 'web/session/vite.config.ts'],
];

for (const [crate, part, file] of CRATES) {
  test(`${crate} works in ${part}/src/${file}`, () => {
    assert.match(read(part, 'Cargo.toml'), new RegExp(`^${crate}(\\.workspace)? = `, 'm'));
    assert.match(read(part, 'src', file), new RegExp(`\\b${crate.replaceAll('-', '_')}::`));
  });
}

for (const [name, file] of PACKAGES) {
  test(`${name} works in ${file}`, () => {
    const { dependencies, devDependencies } = JSON.parse(read('web/package.json'));
    assert.ok({ ...dependencies, ...devDependencies }[name], 'is a dependency');
    assert.match(read(file), new RegExp(`from ["']${name}(/[^"']*)?["']`));
  });
}
