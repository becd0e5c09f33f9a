"""Tests external authorization with a Python client and the messages that Envoy's project publishes.

`auth-edge/proto` contains a part of them: its names and numbers must be the same."""

import json
import unittest

import grpc
from envoy.config.core.v3 import address_pb2, base_pb2
from envoy.service.auth.v3 import attribute_context_pb2, external_auth_pb2, external_auth_pb2_grpc
from google.rpc import code_pb2

from edge import Edge

DEADLINE = 20  # seconds
UNAUTHORIZED = {"error": "not_authenticated", "description": "The user does not have an active session or is not authenticated"}
BROWSER = {"accept": "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
Append = base_pb2.HeaderValueOption
Context = attribute_context_pb2.AttributeContext


def question(headers, path="/orders?open=1", method="GET", redirect=False):
    """Builds Envoy's message about a request, with all fields set."""
    client = address_pb2.Address(socket_address=address_pb2.SocketAddress(address="192.0.2.7", port_value=40_000))
    request = Context.HttpRequest(
        id="6263517483946251038",
        method=method,
        headers={":authority": "app.example", ":path": path, ":method": method, ":scheme": "https"} | headers,
        path=path,
        host="app.example",
        scheme="https",
        protocol="HTTP/2",
        size=-1,
    )
    request_context = Context.Request(http=request)
    request_context.time.GetCurrentTime()
    context = Context(
        source=Context.Peer(address=client, labels={"app": "browser"}),
        destination=Context.Peer(address=client, principal="spiffe://example/envoy"),
        request=request_context,
        context_extensions={"redirect": "1"} if redirect else {},
    )
    context.metadata_context.filter_metadata["envoy.filters.http.ext_authz"]["known"] = True
    return external_auth_pb2.CheckRequest(attributes=context)


def headers_of(options):
    return [(option.header.key, option.header.value) for option in options]


class ExtAuthz(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.edge = Edge()
        cls.addClassCleanup(cls.edge.stop)
        cls.cookie = cls.edge.sign_in()

    def setUp(self):
        channel = grpc.insecure_channel(self.edge.ext_authz)
        self.addCleanup(channel.close)
        self.envoy = external_auth_pb2_grpc.AuthorizationStub(channel)

    def ask(self, headers, **more):
        return self.envoy.Check(question(headers, **more), timeout=DEADLINE)

    def denied(self, answer, code):
        self.assertEqual(answer.WhichOneof("http_response"), "denied_response")
        self.assertEqual(answer.status.code, code)
        return answer.denied_response

    def test_somebody_signed_in_passes_with_headers_that_replace_what_the_client_sent(self):
        sent = {"cookie": f"theme=dark; {self.cookie}", "x-auth-subject": "root", "x_auth_subject": "root", "x-forwarded-user": "root", "authorization": "Bearer forged"}
        answer = self.ask(sent)
        self.assertEqual(answer.status.code, code_pb2.OK)
        self.assertEqual(answer.WhichOneof("http_response"), "ok_response")
        given = dict(headers_of(answer.ok_response.headers))
        self.assertEqual(set(given), {"x-auth-subject", "x-auth-session", "x-auth-issuer", "authorization", "cookie"})
        self.assertNotIn("root", given.values())
        self.assertRegex(given["x-auth-session"], "^[0-9a-f]{32}$")
        self.assertRegex(given["authorization"], "^Bearer .{20,}$")
        self.assertNotEqual(given["authorization"], "Bearer forged")
        self.assertEqual(given["cookie"], "theme=dark")
        for option in answer.ok_response.headers:
            self.assertEqual(option.append_action, Append.OVERWRITE_IF_EXISTS_OR_ADD)
        self.assertEqual(set(answer.ok_response.headers_to_remove), {"x_auth_subject", "x-forwarded-user"})

    def test_without_any_other_cookie_the_header_goes_altogether(self):
        answer = self.ask({"cookie": self.cookie})
        self.assertEqual(list(answer.ok_response.headers_to_remove), ["cookie"])

    def test_a_stranger_is_denied_word_for_word(self):
        answer = self.denied(self.ask({"accept": "application/json"}), code_pb2.UNAUTHENTICATED)
        self.assertEqual(answer.status.code, 401)
        self.assertEqual(json.loads(answer.body), UNAUTHORIZED)
        self.assertIn(("cache-control", "no-store"), headers_of(answer.headers))
        self.assertIn("application/json", dict(headers_of(answer.headers))["content-type"])

    def test_a_stranger_with_a_browser_is_sent_to_sign_in_where_the_route_asks_for_it(self):
        answer = self.denied(self.ask(BROWSER, redirect=True), code_pb2.UNAUTHENTICATED)
        self.assertEqual(answer.status.code, 302)
        location = dict(headers_of(answer.headers))["location"]
        self.assertTrue(location.startswith(f"{self.edge.url}/api/auth/login"), location)
        script = self.denied(self.ask({"sec-fetch-mode": "cors"}, redirect=True), code_pb2.UNAUTHENTICATED)
        self.assertEqual(script.status.code, 401)

    def test_cookies_that_are_forged_doubled_or_cut_are_nobodys(self):
        name, value = self.cookie.split("=")
        for cookie in (f"{name}={value[:-2]}", f"{self.cookie}; {self.cookie}", f"{name}={'0' * 32}.{value.split('.')[1]}", f"{name}=", name, "=" * 5000):
            answer = self.denied(self.ask({"cookie": cookie}), code_pb2.UNAUTHENTICATED)
            self.assertEqual(answer.status.code, 401, cookie[:80])
            self.assertNotIn("set-cookie", dict(headers_of(answer.headers)))

    def test_a_check_without_a_request_or_with_invalid_headers_is_an_invalid_argument(self):
        bad = [
            external_auth_pb2.CheckRequest(),
            external_auth_pb2.CheckRequest(attributes=Context()),
            external_auth_pb2.CheckRequest(attributes=Context(request=Context.Request())),
            question({"a name": "x"}),
            question({"name": "line\r\nbreak"}),
            question({"": "x"}),
        ]
        for check in bad:
            with self.assertRaises(grpc.RpcError) as caught:
                self.envoy.Check(check, timeout=DEADLINE)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, check)

    def test_malformed_and_too_large_messages_are_refused_and_the_next_is_answered(self):
        with grpc.insecure_channel(self.edge.ext_authz) as channel:
            raw = channel.unary_unary("/envoy.service.auth.v3.Authorization/Check")
            with self.assertRaises(grpc.RpcError) as caught:
                raw(b"\x0a\xff\xff\xff\xff\x0f", timeout=DEADLINE)
            self.assertIn(caught.exception.code(), (grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT))
            unknown = channel.unary_unary("/envoy.service.auth.v3.Authorization/Uncheck")
            with self.assertRaises(grpc.RpcError) as caught:
                unknown(b"", timeout=DEADLINE)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        with self.assertRaises(grpc.RpcError) as caught:
            self.ask({"x-long": "x" * 300_000})
        self.assertEqual(caught.exception.code(), grpc.StatusCode.OUT_OF_RANGE)
        self.assertEqual(self.ask({"cookie": self.cookie}).status.code, code_pb2.OK)

    def test_the_port_answers_nothing_else(self):
        with grpc.insecure_channel(self.edge.ext_authz) as channel:
            for method in ("/session.v1.BrowserSessionService/GetCurrentSession", "/session.v1.SessionService/ListSessions"):
                with self.assertRaises(grpc.RpcError) as caught:
                    channel.unary_unary(method)(b"", timeout=DEADLINE)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED, method)


class Outage(unittest.TestCase):
    def test_with_the_session_service_away_envoy_is_told_503_and_no_cookie_is_touched(self):
        edge = Edge()
        self.addCleanup(edge.stop)
        cookie = edge.sign_in()
        edge.sessions.kill()
        self.addCleanup(edge.sessions.start)
        with grpc.insecure_channel(edge.ext_authz) as channel:
            envoy = external_auth_pb2_grpc.AuthorizationStub(channel)
            answer = envoy.Check(question({"cookie": cookie}), timeout=DEADLINE)
        self.assertEqual(answer.status.code, code_pb2.UNAVAILABLE)
        self.assertEqual(answer.denied_response.status.code, 503)
        given = dict(headers_of(answer.denied_response.headers))
        self.assertIn("retry-after", given)
        self.assertNotIn("set-cookie", given)


if __name__ == "__main__":
    unittest.main()
