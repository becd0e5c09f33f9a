"""Tests every error reason of the session service, with its status and details."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest
import uuid

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from service import RefusingProvider, Service
from session_client import DEADLINE, Sessions, at, claims, service_grpc, service_pb2, session_pb2

PATH = "/session.v1.SessionService/"
NOWHERE = "0" * 32


def refusal(call):
    """Returns status code, reason and metadata of a call that must fail."""
    try:
        call()
    except grpc.RpcError as error:
        status = rpc_status.from_call(error)
        if status is None or len(status.details) != 1:
            raise AssertionError(f"not exactly one detail: {error}") from error
        info = error_details_pb2.ErrorInfo()
        if not status.details[0].Unpack(info) or info.domain != "session.v1":
            raise AssertionError(f"not our ErrorInfo: {status}") from error
        return error.code().name, info.reason, dict(info.metadata)
    raise AssertionError("was not refused")


class Reasons(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.provider = RefusingProvider()
        cls.addClassCleanup(cls.provider.stop)
        cls.service = Service(OIDC_ISSUER_URL=cls.provider.issuer)
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.sessions = Sessions(self.service.address)
        self.addCleanup(self.sessions.close)

    def begin(self, issuer=None, sessions=None, user=None, request_id="", **tokens):
        request = service_pb2.CreateSessionRequest(
            issuer=issuer or self.provider.issuer,
            user=claims(**(user or {"sub": "ada"})),
            tokens=session_pb2.TokenSet(scope="openid", **tokens),
            request_id=request_id,
        )
        return (sessions or self.sessions).stub.CreateSession(request, timeout=DEADLINE)

    def token(self, session_id, sessions=None, **more):
        request = service_pb2.GetAccessTokenRequest(session_id=session_id, **more)
        return (sessions or self.sessions).stub.GetAccessToken(request, timeout=DEADLINE)

    def raw(self, method, message):
        return self.sessions.channel.unary_unary(PATH + method)(message, timeout=DEADLINE)

    def test_a_session_that_is_not_there(self):
        missing = ("NOT_FOUND", "ERR_MISSING_SESSION", {})
        self.assertEqual(refusal(lambda: self.sessions.by_id(NOWHERE)), missing)
        self.assertEqual(refusal(lambda: self.sessions.by_handle(NOWHERE)), missing)
        self.assertEqual(refusal(lambda: self.sessions.roll(NOWHERE)), missing)
        self.assertEqual(refusal(lambda: self.sessions.update(NOWHERE, key="value")), missing)
        self.assertEqual(refusal(lambda: self.token(NOWHERE)), missing)

    def test_tokens_that_cannot_be_had(self):
        soon, past = at(time.time() + 600), at(time.time() - 600)
        bare = self.begin().session_id
        self.assertEqual(refusal(lambda: self.token(bare)), ("FAILED_PRECONDITION", "ERR_MISSING_ACCESS_TOKEN", {}))
        fresh = self.begin(access_token="a", expires_at=soon).session_id
        self.assertEqual(refusal(lambda: self.token(fresh, force_refresh=True)), ("FAILED_PRECONDITION", "ERR_MISSING_REFRESH_TOKEN", {}))
        expired = self.begin(access_token="a", expires_at=past).session_id
        self.assertEqual(refusal(lambda: self.token(expired)), ("FAILED_PRECONDITION", "ERR_EXPIRED_ACCESS_TOKEN", {}))
        self.assertEqual(
            refusal(lambda: self.token(fresh, scopes=["openid", "admin", "orders:write"])),
            ("PERMISSION_DENIED", "ERR_INSUFFICIENT_SCOPE", {"scopes": "admin orders:write"}),
        )
        revoked = self.begin(access_token="a", expires_at=past, refresh_token="r").session_id
        for _ in range(2):
            self.assertEqual(refusal(lambda: self.token(revoked)), ("FAILED_PRECONDITION", "ERR_FAILED_REFRESH_GRANT", {}))
        self.assertEqual(self.sessions.by_id(revoked).state, session_pb2.Session.STATE_NEEDS_SIGN_IN)

    def test_a_provider_that_cannot_be_reached(self):
        issuer = "http://127.0.0.1:9"
        service = Service(OIDC_ISSUER_URL=issuer)
        self.addCleanup(service.stop)
        sessions = Sessions(service.address)
        self.addCleanup(sessions.close)
        created = self.begin(issuer, sessions, access_token="a", expires_at=at(time.time() - 600), refresh_token="r")
        self.assertEqual(refusal(lambda: self.token(created.session_id, sessions)), ("UNAVAILABLE", "ERR_PROVIDER_UNAVAILABLE", {}))
        self.assertEqual(sessions.by_id(created.session_id).state, session_pb2.Session.STATE_ACTIVE)

    def test_a_store_that_cannot_be_reached(self):
        service = Service(ready=False, SESSION_STORE="redis://127.0.0.1:9")
        self.addCleanup(service.stop)
        sessions = Sessions(service.address)
        self.addCleanup(sessions.close)
        self.assertEqual(refusal(lambda: sessions.by_id(NOWHERE)), ("UNAVAILABLE", "ERR_STORE_UNAVAILABLE", {}))

    def test_writes_that_collide(self):
        created = self.begin()
        self.sessions.update(created.session_id, created.session.version, key="one")
        stale = refusal(lambda: self.sessions.update(created.session_id, created.session.version, key="two"))
        self.assertEqual(stale, ("ABORTED", "ERR_STALE_VERSION", {}))
        self.assertEqual(json.loads(self.sessions.by_id(created.session_id).attributes)["key"], "one")
        request_id = str(uuid.uuid4())
        self.begin(request_id=request_id)
        reused = refusal(lambda: self.begin(request_id=request_id, user={"sub": "grace"}))
        self.assertEqual(reused, ("ALREADY_EXISTS", "ERR_REQUEST_ID_REUSED", {}))

    def test_what_is_malformed_is_named(self):
        issuer = self.provider.issuer
        for _ in range(2):
            self.begin(user={"sub": "many"})
        token = self.sessions.list(issuer, "many", 1).next_page_token
        for field, call in {
            "session_id": lambda: self.sessions.by_id("not-an-id"),
            "handle": lambda: self.sessions.by_handle("X" * 32),
            "issuer": lambda: self.sessions.list("", "ada"),
            "subject": lambda: self.sessions.list(issuer, ""),
            "page_size": lambda: self.sessions.list(issuer, "ada", -1),
            "page_token": lambda: self.sessions.list(issuer, "somebody", 1, token),
            "user.sub": lambda: self.begin(user={"name": "nobody"}),
            "request_id": lambda: self.begin(request_id="short"),
            "tokens.token_type": lambda: self.begin(access_token="a", token_type="MAC"),
            "resume_token": lambda: next(self.sessions.watch(resume_token="two words")),
        }.items():
            with self.subTest(field):
                self.assertEqual(refusal(call), ("INVALID_ARGUMENT", "ERR_INVALID_ARGUMENT", {"field": field}))

    def test_what_is_too_large_or_no_message_or_no_method(self):
        created = self.begin()
        large = refusal(lambda: self.sessions.update(created.session_id, note="x" * 100_000))
        self.assertEqual(large, ("INVALID_ARGUMENT", "ERR_SESSION_TOO_LARGE", {"limitBytes": "65536"}))
        larger = refusal(lambda: self.raw("GetSession", b"\x12" + b"\xff" * 300_000))
        self.assertEqual(larger[:2], ("RESOURCE_EXHAUSTED", "ERR_REQUEST_TOO_LARGE"))
        self.assertEqual(refusal(lambda: self.raw("GetSession", b"\xff\xff"))[:2], ("INVALID_ARGUMENT", "ERR_MALFORMED_REQUEST"))
        self.assertEqual(refusal(lambda: self.raw("NoSuchMethod", b""))[:2], ("UNIMPLEMENTED", "ERR_UNIMPLEMENTED"))

    def test_a_deadline_that_passes_is_told_as_such(self):
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.sessions.stub.WatchSessions(service_pb2.WatchSessionsRequest(), timeout=0.2))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


class Callers(unittest.TestCase):
    """Tests mutual TLS with a list of callers and their calls."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="vestibule-callers-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.certify("ca")
        cls.certify("server", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        for name in ("orders", "stranger"):
            cls.certify(name, f"subjectAltName=DNS:{name}.shop.internal")
        with open(f"{cls.folder}/callers.toml", "w") as file:
            file.write('[[caller]]\nidentity = "dns:orders.shop.internal"\nrpcs = ["GetSession"]\n')
        cls.service = Service(
            SESSION_TLS_CERT_FILE=f"{cls.folder}/server.pem",
            SESSION_TLS_KEY_FILE=f"{cls.folder}/server.key",
            SESSION_CLIENT_CA_FILE=f"{cls.folder}/ca.pem",
            SESSION_CALLERS=f"{cls.folder}/callers.toml",
        )
        cls.addClassCleanup(cls.service.stop)

    @classmethod
    def certify(cls, name, extension=None):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        command += ["-subj", f"/CN={name}", "-keyout", f"{cls.folder}/{name}.key", "-out", f"{cls.folder}/{name}.pem"]
        if extension:
            command += ["-addext", extension, "-addext", "basicConstraints=critical,CA:FALSE"]
            command += ["-CA", f"{cls.folder}/ca.pem", "-CAkey", f"{cls.folder}/ca.key"]
        subprocess.run(command, check=True, capture_output=True)

    def stub(self, name):
        read = lambda file: pathlib.Path(self.folder, file).read_bytes()
        credentials = grpc.ssl_channel_credentials(read("ca.pem"), read(f"{name}.key"), read(f"{name}.pem"))
        channel = grpc.secure_channel(self.service.address, credentials)
        self.addCleanup(channel.close)
        return service_grpc.SessionServiceStub(channel)

    def test_who_is_on_the_list_calls_what_the_list_says(self):
        orders = self.stub("orders")
        get = lambda: orders.GetSession(service_pb2.GetSessionRequest(session_id=NOWHERE), timeout=DEADLINE)
        self.assertEqual(refusal(get)[1], "ERR_MISSING_SESSION")
        end = lambda: orders.EndSession(service_pb2.EndSessionRequest(session_id=NOWHERE), timeout=DEADLINE)
        self.assertEqual(refusal(end)[:2], ("PERMISSION_DENIED", "ERR_CALLER_NOT_ALLOWED"))

    def test_who_is_not_on_the_list_calls_nothing(self):
        stranger = self.stub("stranger")
        get = lambda: stranger.GetSession(service_pb2.GetSessionRequest(session_id=NOWHERE), timeout=DEADLINE)
        self.assertEqual(refusal(get)[:2], ("UNAUTHENTICATED", "ERR_UNKNOWN_CALLER"))


if __name__ == "__main__":
    unittest.main()
