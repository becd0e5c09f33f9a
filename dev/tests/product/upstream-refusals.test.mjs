// How real servers refuse requests before they close: the edge retries unprocessed ones and forwards early refusals.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { issue, makeAuthority } from '../../lib/authority.mjs';
import { freePort } from '../../lib/net.mjs';
import { startStack } from '../../stack.mjs';
import { request } from './client.mjs';
import { Program } from './proxies.mjs';

const UPLOAD_BYTES = 20 * 1024 * 1024;
const UPLOADS = 40;
const REQUESTS = 400;
const AT_ONCE = 8;

// Responds after the head, and closes with the body unread.
const PYTHON = `
import http.server, sys
class Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(413)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"too big")
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Refusing).serve_forever()
`;

const folder = mkdtempSync(join(tmpdir(), 'vestibule-refusals-'));
const started = [];
let [stack, refusing] = [];

before(async () => {
  const ports = { tls: await freePort(), plain: await freePort(), python: await freePort(), http1: await freePort() };
  const authority = makeAuthority(folder);
  issue(authority, join(folder, 'tls'), ['127.0.0.1'], ['serverAuth']);
  const server = 'keepalive_requests 20; client_max_body_size 1m; location / { return 200 $request_method; } location /large { proxy_pass http://127.0.0.1:1; } location = /docs { return 301 /docs/; }';
  writeFileSync(join(folder, 'nginx.conf'), `daemon off; pid ${folder}/pid; error_log stderr; events {}
http { access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
server { listen 127.0.0.1:${ports.tls} ssl http2; ssl_certificate ${folder}/tls/tls.crt; ssl_certificate_key ${folder}/tls/tls.key; ${server} }
server { listen 127.0.0.1:${ports.plain} http2; ${server} }
server { listen 127.0.0.1:${ports.http1}; ${server} } }`);
  started.push(await new Program('nginx', ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]).listening(ports.tls));
  started.push(await new Program('python3', ['-c', PYTHON, String(ports.python)]).listening(ports.python));
  refusing = http.createServer((incoming, answer) => {
    const status = Number(incoming.url.split('/').at(-1));
    answer.writeHead(status, { location: '/elsewhere', connection: 'close', 'content-length': 7 });
    answer.end('refused', () => incoming.socket.destroy());
  });
  await new Promise((resolve) => { refusing.listen(0, '127.0.0.1', resolve); });
  const routes = [['nginx', `http://127.0.0.1:${ports.http1}`], ['tls', `https://127.0.0.1:${ports.tls}`], ['h2c', `h2c://127.0.0.1:${ports.plain}`], ['node', `http://127.0.0.1:${refusing.address().port}`], ['python', `http://127.0.0.1:${ports.python}`]];
  const table = join(folder, 'routes.toml');
  writeFileSync(table, routes.map(([name, upstream]) => `[[route]]\npath = "/${name}/*"\nguard = "none"\nstrip_prefix = true\nmax_body = 0\nupstream = "${upstream}"\n`).join(''));
  stack = await startStack({ routes: table, edgeEnv: { EDGE_UPSTREAM_CA_FILE: authority.certificate } });
});
after(async () => {
  await stack?.stop();
  for (const program of started) await program.stop();
  refusing?.close();
  rmSync(folder, { recursive: true });
});

/** Runs `job` this many times, some in parallel; counts each result. */
async function tally(times, atOnce, job) {
  const counts = {};
  let left = times;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (left-- > 0) {
      const outcome = await job();
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    }
  }));
  return counts;
}

/** Uploads raw bytes on a separate connection, regardless of the response; returns the status, or `none`. */
function upload(path) {
  return new Promise((resolve) => {
    let got = '';
    const socket = net.connect(Number(new URL(stack.edgeUrl).port), '127.0.0.1');
    const piece = Buffer.alloc(256 * 1024);
    let left = UPLOAD_BYTES;
    const send = () => { while (left > 0 && socket.writable && socket.write(piece)) left -= piece.length; };
    socket.write(`POST ${path} HTTP/1.1\r\nHost: ${new URL(stack.edgeUrl).host}\r\nContent-Length: ${UPLOAD_BYTES}\r\nConnection: close\r\n\r\n`);
    socket.on('connect', send).on('drain', send).on('error', () => {});
    socket.on('data', (data) => { got += data.toString('latin1'); if (got.includes('\r\n\r\n')) socket.destroy(); });
    socket.on('close', () => resolve(got.split(' ')[1] ?? 'none'));
  });
}

for (const name of ['tls', 'h2c']) {
  test(`requests that an upstream did not process are sent again, by any method (${name})`, async () => {
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const body = method === 'DELETE' ? undefined : 'hello';
      const send = async () => (await request(`${stack.edgeUrl}/${name}/a`, { method, body })).status;
      assert.deepEqual(await tally(REQUESTS, AT_ONCE, send), { 200: REQUESTS }, method);
    }
  });

  test(`an upload that is refused at once gets the refusal (${name})`, async () => {
    assert.deepEqual(await tally(UPLOADS, 4, () => upload(`/${name}/large`)), { 413: UPLOADS });
  });
}

for (const path of ['/python/a', '/node/413', '/node/401', '/node/307', '/node/200']) {
  test(`an upload that is refused at once gets the refusal (${path})`, async () => {
    const status = path === '/python/a' ? '413' : path.split('/').at(-1);
    assert.deepEqual(await tally(UPLOADS, 4, () => upload(path)), { [status]: UPLOADS });
  });
}

test('a redirect to the address of an upstream leads to the edge, below the stripped prefix', async () => {
  for (const name of ['nginx', 'tls', 'h2c']) {
    const { status, headers } = await request(`${stack.edgeUrl}/${name}/docs`);
    assert.deepEqual([status, headers.get('location')], [301, `${stack.edgeUrl}/${name}/docs/`]);
  }
});

test('an answer of HTTP/1.0 without a length is one of HTTP/1.1, whole and with its end', async () => {
  const got = await new Promise((resolve, reject) => {
    const incoming = http.get(`${stack.edgeUrl}/python/a`, { agent: false }, async (answer) => {
      const chunks = await answer.toArray().catch(reject);
      resolve([answer.httpVersion, answer.headers['transfer-encoding'], Buffer.concat(chunks).toString()]);
    });
    incoming.on('error', reject);
  });
  // The client asks to close the connection; a body without a length must still be chunked.
  assert.deepEqual(got, ['1.1', 'chunked', 'hello']);
});
