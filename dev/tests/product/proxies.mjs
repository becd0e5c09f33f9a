// Runs docs/integrations with the real programs from Debian and PyPI; replaces only addresses and ports.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';

import { until } from '../../lib/net.mjs';
import { ROOT } from '../../stack.mjs';

/** A program that runs until it is stopped by its process id. */
export class Program {
  constructor(command, args, options = {}) {
    this.log = '';
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.setEncoding('utf8').on('data', (text) => { this.log += text; });
    this.ended = new Promise((resolve) => { this.child.once('close', resolve).once('error', resolve); });
  }

  /** Waits until the port accepts connections. */
  async listening(port) {
    const connects = () => new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
    });
    await until(20_000, connects, () => `nothing listens on ${port}: ${this.log}`);
    return this;
  }

  async stop() {
    this.child.kill('SIGTERM');
    await this.ended;
  }
}

/** A configuration of docs/integrations with these addresses and files in place of the original ones. */
export function configuration(folder, name, replaced) {
  let text = readFileSync(join(ROOT, 'docs/integrations', name), 'utf8');
  for (const [from, to] of Object.entries(replaced)) {
    assert.ok(text.includes(from), `${name} holds ${from}`);
    text = text.replaceAll(from, to);
  }
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** nginx with the shipped recipe and these further replacements. */
export const startNginx = (folder, ports, replaced = {}) => new Program('nginx', ['-p', folder, '-e', 'stderr', '-c', configuration(folder, 'nginx.conf', {
  '127.0.0.1:8080': `127.0.0.1:${ports.front}`, '127.0.0.1:3000': `127.0.0.1:${ports.edge}`, '127.0.0.1:9080': `127.0.0.1:${ports.application}`, 'app.example.com': '127.0.0.1', '/run/nginx-vestibule.pid': join(folder, 'nginx.pid'), ...replaced,
})]);

const FROM_PYPI = join(ROOT, '.cache/proxies/bin');

/** Starts a proxy: `(folder, {front, edge, application, extAuthz})`, ports of 127.0.0.1; checks go to `edge`. */
export const START = {
  nginx: (folder, ports) => startNginx(folder, ports),
  caddy: (folder, ports) => new Program('caddy', ['run', '--adapter', 'caddyfile', '--config', configuration(folder, 'Caddyfile', {
    '127.0.0.1:8080': `127.0.0.1:${ports.front}`, '127.0.0.1:3000': `127.0.0.1:${ports.edge}`, '127.0.0.1:9080': `127.0.0.1:${ports.application}`,
  })], { env: { ...process.env, HOME: folder } }),
  haproxy: (folder, ports) => {
    copyFileSync(join(ROOT, 'docs/integrations/haproxy-check.lua'), join(folder, 'haproxy-check.lua'));
    return new Program('haproxy', ['-db', '-f', configuration(folder, 'haproxy-check.cfg', {
      '127.0.0.1:8080': `127.0.0.1:${ports.front}`, '127.0.0.1:3000': `127.0.0.1:${ports.edge}`, '127.0.0.1:9080': `127.0.0.1:${ports.application}`,
    })], { cwd: folder });
  },
  traefik: (folder, ports) => {
    configuration(folder, 'traefik-dynamic.yml', { '127.0.0.1:3000': `127.0.0.1:${ports.edge}`, '127.0.0.1:9080': `127.0.0.1:${ports.application}` });
    return new Program(join(FROM_PYPI, 'traefik'), [`--configFile=${configuration(folder, 'traefik.yml', { '127.0.0.1:8080': `127.0.0.1:${ports.front}` })}`], { cwd: folder });
  },
  envoy: (folder, ports) => new Program(join(FROM_PYPI, 'envoy'), ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn', '-c', configuration(folder, 'envoy.yaml', {
    'port_value: 8080': `port_value: ${ports.front}`, 'port_value: 3000': `port_value: ${ports.edge}`, 'port_value: 3001': `port_value: ${ports.extAuthz}`, 'port_value: 9080': `port_value: ${ports.application}`,
  })], { cwd: folder }),
};
