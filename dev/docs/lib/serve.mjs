// Serves the site on loopback as a static server does, for readers and tests.
import { createReadStream, existsSync } from 'node:fs';
import http from 'node:http';
import { extname, join, relative } from 'node:path';

import { fileOf } from './check.mjs';

const TYPES = { '.css': 'text/css', '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.json': 'application/json', '.png': 'image/png', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };

/** Serves `site` on a port of 127.0.0.1, 0 for any: `{url, stop}`. */
export async function serveSite(site, port = 0) {
  const server = http.createServer(({ url }, response) => {
    const file = fileOf(site, new URL(url, 'http://site').pathname);
    const found = !relative(site, file).startsWith('..') && existsSync(file);
    response.writeHead(found ? 200 : 404, { 'content-type': TYPES[extname(found ? file : '.html')] ?? 'application/octet-stream' });
    createReadStream(found ? file : join(site, '404.html')).pipe(response);
  });
  await new Promise((resolve, reject) => { server.once('error', reject).listen(port, '127.0.0.1', resolve); });
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }) };
}
