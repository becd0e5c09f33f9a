"""The session API called from another language, against a real session service with its embedded store."""

import os
import pathlib
import secrets
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import grpc
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

from session_client import Sessions

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / "session-svc"
ISSUER = "https://idp.example.test"
READY_SECONDS = 20


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Service:
    """One session service with a file store; `restart` kills it outright and starts it again."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="vestibule-python-")
        self.address = f"127.0.0.1:{free_port()}"
        self.admin = f"127.0.0.1:{free_port()}"
        self.settings = {
            "SESSION_LISTEN": self.address,
            "SESSION_ADMIN_LISTEN": self.admin,
            "SESSION_STORE": f"file:{self.folder.name}/sessions.redb",
            "SESSION_ENCRYPTION_KEY": secrets.token_hex(32),
            "OIDC_ISSUER_URL": ISSUER,
            "OIDC_CLIENT_ID": "vestibule",
            "OIDC_CLIENT_SECRET": secrets.token_hex(16),
        }
        self.start()

    def start(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_", "EDGE_", "OIDC_"))}
        self.log = open(f"{self.folder.name}/log", "ab")
        self.process = subprocess.Popen([PROGRAM], env=inherited | self.settings, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://{self.admin}/readyz", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(pathlib.Path(f"{self.folder.name}/log").read_text())
            time.sleep(0.02)

    def restart(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()
        self.start()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.log.close()
        self.folder.cleanup()
        return code


class SessionApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.sessions = Sessions(self.service.address)
        self.addCleanup(self.sessions.close)

    def begin(self, **more):
        user = {"sub": "ada", "name": "Ada Lovelace", "email": "ada@example.test"}
        return self.sessions.create(ISSUER, user, "access-1", time.time() + 600, **more)

    def refusal(self, call, *arguments):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*arguments)
        info = error_details_pb2.ErrorInfo()
        for detail in rpc_status.from_call(caught.exception).details:
            if detail.Unpack(info):
                break
        return caught.exception.code(), info.reason, info.domain

    def test_a_session_is_created_and_read_by_its_id_and_by_its_handle(self):
        created = self.begin()
        self.assertRegex(created.session_id, "^[0-9a-f]{32}$")
        self.assertNotEqual(created.session.handle, created.session_id)
        by_id = self.sessions.by_id(created.session_id)
        self.assertEqual(by_id.subject, "ada")
        self.assertEqual(by_id.issuer, ISSUER)
        self.assertEqual(by_id.user["name"], "Ada Lovelace")
        self.assertEqual(self.sessions.by_handle(created.session.handle).handle, by_id.handle)
        self.assertGreater(by_id.expires_at.seconds, time.time())

    def test_the_access_token_is_handed_to_the_holder_of_the_id(self):
        created = self.begin()
        token = self.sessions.access_token(created.session_id, "profile")
        self.assertEqual(token.access_token, "access-1")
        self.assertEqual(token.token_type, "Bearer")

    def test_a_scope_that_was_not_granted_is_refused_with_its_reason(self):
        created = self.begin()
        code, reason, domain = self.refusal(self.sessions.access_token, created.session_id, "admin")
        self.assertEqual((code, reason, domain), (grpc.StatusCode.PERMISSION_DENIED, "ERR_INSUFFICIENT_SCOPE", "session.v1"))

    def test_rolling_answers_with_the_session(self):
        created = self.begin()
        rolled = self.sessions.roll(created.session_id)
        self.assertEqual(rolled.session.handle, created.session.handle)
        self.assertGreaterEqual(rolled.session.expires_at.seconds, created.session.expires_at.seconds)

    def test_an_ended_session_is_gone_with_the_reason_missing_session(self):
        created = self.begin()
        self.assertTrue(self.sessions.end(created.session_id).ended)
        code, reason, domain = self.refusal(self.sessions.by_id, created.session_id)
        self.assertEqual((code, reason, domain), (grpc.StatusCode.NOT_FOUND, "ERR_MISSING_SESSION", "session.v1"))
        self.assertFalse(self.sessions.end(created.session_id).ended)

    def test_the_same_request_id_creates_one_session(self):
        first = self.begin(request_id="3f2a9c1e-8f4b-4d7e-9a63-6f0d8a5b2c11")
        second = self.begin(request_id="3f2a9c1e-8f4b-4d7e-9a63-6f0d8a5b2c11")
        self.assertEqual(first.session_id, second.session_id)

    def test_an_id_that_is_no_id_is_an_invalid_argument(self):
        code, _, domain = self.refusal(self.sessions.by_id, "not-an-id")
        self.assertEqual((code, domain), (grpc.StatusCode.INVALID_ARGUMENT, "session.v1"))

    def test_a_session_outlives_a_kill_of_the_service(self):
        created = self.begin()
        self.service.restart()
        again = Sessions(self.service.address)
        self.addCleanup(again.close)
        self.assertEqual(again.by_id(created.session_id).subject, "ada")

    def test_reflection_names_the_services(self):
        names = ProtoReflectionDescriptorDatabase(self.sessions.channel).get_services()
        self.assertIn("session.v1.SessionService", names)
        self.assertIn("grpc.health.v1.Health", names)


class Stopping(unittest.TestCase):
    def test_sigterm_drains_and_exits_with_0(self):
        self.assertEqual(Service().stop(), 0)


if __name__ == "__main__":
    unittest.main()
