// A fake PostHog server: serves the remote configuration, unpacks event and replay batches, and stores them.
import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";

const CONFIG = {
  supportedCompression: ["gzip", "gzip-js"],
  hasFeatureFlags: false,
  captureDeadClicks: false,
  capturePerformance: false,
  autocapture_opt_out: true,
  autocaptureExceptions: false,
  analytics: { endpoint: "/e/" },
  elementsChainAsString: true,
  sessionRecording: {
    endpoint: "/s/",
    consoleLogRecordingEnabled: false,
    recorderVersion: "v2",
    sampleRate: null,
  },
  heatmaps: false,
  conversations: false,
  surveys: false,
  defaultIdentifiedOnly: true,
  siteApps: [],
  isAuthenticated: false,
  toolbarParams: {},
};

export async function startAnalyticsServer() {
  const requests = [];
  // Error statuses for the next posts, by path; then posts succeed again.
  const failing = { "/e/": [], "/s/": [] };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { pathname } = new URL(request.url, "http://stub");
    const status = failing[pathname]?.shift() ?? 200;
    const zipped = body[0] === 0x1f && body[1] === 0x8b;
    requests.push({
      method: request.method,
      pathname,
      headers: request.headers,
      status,
      zipped,
      bytes: body.length,
      content: body.length > 0 ? parse(zipped ? gunzipSync(body) : body) : null,
    });
    response.writeHead(status, { "content-type": "application/json" });
    response.end(
      JSON.stringify(pathname.endsWith("/config") ? CONFIG : { status: status === 200 ? "Ok" : "no" }),
    );
  });
  server.keepAliveTimeout = 60_000; // longer than the edge keeps connections: else one may close under a request
  // The items that arrived at a path with this response status.
  const received = (path, status) =>
    requests
      .filter((request) => request.pathname === path && request.status === status)
      .flatMap(({ content }) => (Array.isArray(content) ? content : (content?.batch ?? [content])));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    failing,
    events: (status = 200) => received("/e/", status),
    replays: () => received("/s/", 200),
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}

function parse(bytes) {
  const text = bytes.toString("utf8");
  if (text.startsWith("data="))
    return JSON.parse(Buffer.from(new URLSearchParams(text).get("data"), "base64").toString("utf8"));
  return JSON.parse(text);
}
