// An application behind the edge that returns the identity that the edge sent. It names tokens by their hashes only.
import { once } from 'node:events';
import http from 'node:http';

import { nameOf } from './history.mjs';

export async function startUpstream() {
  const server = http.createServer(({ headers }, response) => {
    const token = headers.authorization?.replace(/^Bearer /, '');
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ sub: headers['x-auth-subject'], handle: headers['x-auth-session'], token: token && nameOf(token) }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
