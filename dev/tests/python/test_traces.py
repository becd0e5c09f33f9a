"""Tests traces as a collector receives them: one a request, from the edge to all services behind it."""

import dataclasses
import http.server
import json
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from edge import Edge
from program import ROOT, free_port

PATIENCE = 20  # seconds
LOOKED_TWICE = 2  # seconds in which each program has checked twice which others exist


@dataclasses.dataclass
class Span:
    """A span as collector.py prints it."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    is_error: bool
    attributes: dict
    links: list
    text: str


class Collector:
    """Runs collector.py and stores every span."""

    def __init__(self):
        self.spans = []
        python = ROOT / ".cache/collector/bin/python"
        self.process = subprocess.Popen([python, ROOT / "dev/tests/python/collector.py"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.spans.append(Span(**json.loads(line)))

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def trace(self, trace_id, complete):
        """Waits until `complete` is true for the spans of a trace, and returns them."""
        deadline = time.monotonic() + PATIENCE
        while True:
            spans = [span for span in list(self.spans) if span.trace == trace_id]
            if complete(spans):
                return spans
            if time.monotonic() > deadline:
                raise AssertionError(f"the trace has {[(span.service, span.name, span.kind) for span in spans]}")
            time.sleep(0.05)


class Redis:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="vestibule-redis-")
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        self.process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder], stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        shutil.rmtree(self.folder)


class Upstream:
    """An upstream that answers every request. `seen` has the received traces."""

    def __init__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.headers["traceparent"])
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.collector, cls.redis, cls.upstream = Collector(), Redis(), Upstream()
        cls.addClassCleanup(cls.collector.stop)
        cls.addClassCleanup(cls.redis.stop)
        cls.addClassCleanup(cls.upstream.stop)
        routes = tempfile.NamedTemporaryFile("w", suffix=".toml")
        cls.addClassCleanup(routes.close)
        routes.write(f'[[route]]\npath = "/orders/*"\nguard = "api"\nupstream = "{cls.upstream.url}"\n')
        routes.write(f'[[route]]\npath = "/down/*"\nguard = "none"\nupstream = "http://127.0.0.1:{free_port()}"\n')
        routes.flush()
        # The log level does not affect traces.
        traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": cls.collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100", "RUST_LOG": "warn"}
        of_edge = traced | {"EDGE_ROUTES": routes.name, "EDGE_SESSION_CACHE_SECS": "0"}
        cls.edge = Edge(of_edge, traced | {"SESSION_STORE": cls.redis.url})
        cls.addClassCleanup(cls.edge.stop)
        cls.cookie = cls.edge.sign_in()

    def ask(self, path, trace, cookie=None, method="GET"):
        """Sends the edge a request in a trace, and returns the status and the answer's request ID."""
        headers = {"cookie": cookie or self.cookie, "traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        request = urllib.request.Request(f"{self.edge.url}{path}", headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.headers["x-request-id"]
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code, refused.headers["x-request-id"]

    def child(self, spans, parent, name, kind):
        found = [span for span in spans if (span.parent, span.name, span.kind) == (parent.id, name, kind)]
        self.assertEqual(len(found), 1, [(span.service, span.name, span.kind, span.parent) for span in spans])
        return found[0]

    def test_a_request_is_one_trace_through_the_session_service_to_redis(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4701"
        status, request_id = self.ask("/api/auth/me", trace)
        self.assertEqual(status, 200)
        spans = self.collector.trace(trace, lambda spans: [span.kind for span in spans].count("SERVER") == 2 and len(spans) >= 4)
        [root] = [span for span in spans if span.parent == "00f067aa0ba902b7"]
        self.assertEqual((root.service, root.name, root.kind), ("auth-edge", "GET /api/auth/me", "SERVER"))
        told = {key: root.attributes[key] for key in ("http.request.method", "http.route", "http.response.status_code", "request_id")}
        self.assertEqual(told, {"http.request.method": "GET", "http.route": "/api/auth/me", "http.response.status_code": 200, "request_id": request_id})
        method = "session.v1.SessionService/GetSession"
        call = self.child(spans, root, method, "CLIENT")
        answered = self.child(spans, call, method, "SERVER")
        self.assertEqual((call.service, answered.service), ("auth-edge", "session-svc"))
        of_call = {"rpc.system.name": "grpc", "rpc.method": method, "rpc.response.status_code": "OK", "server.address": "127.0.0.1"}
        self.assertEqual({key: call.attributes.get(key) for key in of_call}, of_call)
        self.assertGreater(call.attributes["server.port"], 0)
        [stored] = [span for span in spans if span.parent == answered.id]
        self.assertEqual((stored.kind, stored.attributes["db.system.name"], stored.attributes["db.operation.name"]), ("CLIENT", "redis", stored.name))
        self.assertNotIn(True, [span.is_error for span in spans])

    def test_an_upstream_continues_the_span_that_asks_it(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4702"
        self.assertEqual(self.ask("/orders/7?coupon=very-private", trace)[0], 200)
        spans = self.collector.trace(trace, lambda spans: {"GET", "GET /orders/*"} <= {span.name for span in spans})
        [root] = [span for span in spans if span.name == "GET /orders/*"]
        asked = self.child(spans, root, "GET", "CLIENT")
        self.assertEqual(self.upstream.seen[-1], f"00-{trace}-{asked.id}-01")
        self.assertEqual(asked.attributes["http.response.status_code"], 200)
        self.assertEqual(f"http://{asked.attributes['server.address']}:{asked.attributes['server.port']}", self.upstream.url)
        self.assertEqual(asked.attributes["url.full"], f"{self.upstream.url}/orders/7", "without the query")

    def test_what_fails_says_so(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4703"
        self.assertEqual(self.ask("/down/", trace)[0], 502)
        spans = self.collector.trace(trace, lambda spans: {"SERVER", "CLIENT"} <= {span.kind for span in spans})
        errors = {span.kind: span.attributes["error.type"] for span in spans if span.is_error}
        self.assertEqual(errors, {"SERVER": "502", "CLIENT": "broken"})
        self.assertEqual(self.ask("/nowhere", "4bf92f3577b34da6a3ce929d0e0e4704")[0], 404)
        [missed] = self.collector.trace("4bf92f3577b34da6a3ce929d0e0e4704", bool)
        self.assertEqual((missed.name, missed.attributes.get("http.route")), ("GET", None), "no route answers")
        self.assertFalse(missed.is_error, "a client's error is no server error")

    def test_a_call_of_the_session_service_that_fails_says_how_and_where(self):
        signed_out = self.edge.sign_in()
        self.ask("/api/auth/logout", "4bf92f3577b34da6a3ce929d0e0e4707", cookie=signed_out)
        self.ask("/api/auth/me", "4bf92f3577b34da6a3ce929d0e0e4708", cookie=signed_out)
        spans = self.collector.trace("4bf92f3577b34da6a3ce929d0e0e4708", lambda spans: "CLIENT" in {span.kind for span in spans if span.service == "auth-edge"})
        [failed] = [span for span in spans if (span.service, span.kind) == ("auth-edge", "CLIENT")]
        self.assertEqual((failed.attributes["rpc.response.status_code"], failed.attributes["server.address"]), ("NOT_FOUND", "127.0.0.1"))

    def test_a_method_that_nobody_knows_names_no_span(self):
        for path, trace, name in (("/down/", "4bf92f3577b34da6a3ce929d0e0e4709", "HTTP /down/*"), ("/nowhere", "4bf92f3577b34da6a3ce929d0e0e4710", "HTTP")):
            self.ask(path, trace, method="BREW")
            spans = self.collector.trace(trace, lambda spans: "SERVER" in {span.kind for span in spans})
            [root] = [span for span in spans if span.kind == "SERVER"]
            self.assertEqual((root.name, root.attributes["http.request.method"], root.attributes["http.request.method_original"]), (name, "_OTHER", "BREW"))
            self.assertLessEqual({span.name for span in spans}, {name, "HTTP"})

    def test_a_sign_in_shows_what_the_provider_was_asked(self):
        [callback] = [span.trace for span in self.waited("GET /api/auth/callback")][:1]
        spans = self.collector.trace(callback, lambda spans: any(span.name.endswith("/CreateSession") and span.kind == "SERVER" for span in spans))
        [root] = [span for span in spans if span.name == "GET /api/auth/callback"]
        token = self.child(spans, root, "POST token_endpoint", "CLIENT")
        self.assertEqual((token.attributes["http.request.method"], token.attributes["http.response.status_code"]), ("POST", 200))
        self.assertTrue(token.attributes["url.full"].startswith(self.edge.provider.issuer), token.attributes)
        [created] = [span for span in spans if span.name.endswith("/CreateSession") and span.kind == "SERVER"]
        self.assertIn("insert", [span.attributes.get("db.stored_procedure.name") for span in spans if span.parent == created.id])

    def waited(self, name):
        deadline = time.monotonic() + PATIENCE
        while not (found := [span for span in list(self.collector.spans) if span.name == name]):
            self.assertLess(time.monotonic(), deadline, name)
            time.sleep(0.05)
        return found

    def test_nothing_that_is_secret_or_private_is_in_a_span(self):
        self.ask("/orders/7?coupon=very-private", "4bf92f3577b34da6a3ce929d0e0e4705")
        self.collector.trace("4bf92f3577b34da6a3ce929d0e0e4705", lambda spans: {"SERVER", "CLIENT"} <= {span.kind for span in spans})
        text = "\n".join(span.text for span in list(self.collector.spans))
        session_id = self.cookie.partition("=")[2].partition(".")[0]
        for secret in (session_id, "very-private", "ada@example.test", "code=", "state=", "eyJ"):
            self.assertNotIn(secret, text)

    def test_looking_whether_others_are_there_begins_no_trace(self):
        until = time.monotonic() + LOOKED_TWICE
        while time.monotonic() < until:
            roots = [(span.service, span.name) for span in list(self.collector.spans) if not span.parent and (span.service, span.kind) != ("auth-edge", "SERVER")]
            self.assertEqual(roots, [])
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
