"""Tests the session API from Python, against a real session service with its embedded store."""

import json
import time
import unittest

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from service import ISSUER, Service
from session_client import Sessions


class SessionApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.sessions = Sessions(self.service.address)
        self.expires_at = time.time() + 600  # the same in a repeated request
        self.addCleanup(self.sessions.close)

    def begin(self, **more):
        user = {"sub": "ada", "name": "Ada Lovelace", "email": "ada@example.test"}
        return self.sessions.create(ISSUER, user, "access-1", self.expires_at, **more)

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
        self.assertEqual(json.loads(by_id.user)["name"], "Ada Lovelace")
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


class Stopping(unittest.TestCase):
    def test_sigterm_drains_and_exits_with_0(self):
        self.assertEqual(Service().stop(), 0)


if __name__ == "__main__":
    unittest.main()
