// A small MCP server (Streamable HTTP, without sessions) as an upstream. Its tool returns the headers of the request.
import http from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

function makeServer(headers) {
  const server = new McpServer({ name: 'orders', version: '1.0.0' });
  server.registerTool('whoami', { description: 'The caller, as the edge describes it' }, () => ({
    content: [{ type: 'text', text: JSON.stringify(headers) }],
  }));
  return server;
}

/** Starts the server on a free port of loopback. */
export async function startServer() {
  const listener = http.createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    const server = makeServer(request.headers);
    response.on('close', () => server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${listener.address().port}`,
    stop: () => new Promise((resolve) => { listener.closeAllConnections(); listener.close(resolve); }),
  };
}
