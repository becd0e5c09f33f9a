"""Tests BatchGetSessions: several sessions in one call, each with its own result."""

import time
import unittest

from service import ISSUER, Service
from session_client import Sessions, reason_pb2, service_pb2

Request = service_pb2.GetSessionRequest
NOWHERE = "0" * 32


class Batches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service(SESSION_STORE="memory:", SESSION_ROLL_INTERVAL="0")
        cls.addClassCleanup(cls.service.stop)
        cls.sessions = Sessions(cls.service.address)
        cls.addClassCleanup(cls.sessions.close)

    def begin(self, subject):
        return self.sessions.create(ISSUER, {"sub": subject}, "access", time.time() + 600)

    def test_results_come_in_the_order_of_the_requests_and_a_failure_is_one_result(self):
        ada, grace = self.begin("ada"), self.begin("grace")
        requests = [
            Request(session_id=grace.session_id), Request(session_id=NOWHERE), Request(session_id="not-an-id"),
            Request(handle=ada.session.handle), Request(session_id=grace.session_id),
        ]
        results = self.sessions.batch(*requests)
        kinds = [result.WhichOneof("outcome") for result in results]
        self.assertEqual(kinds, ["response", "failure", "failure", "response", "response"])
        subjects = [results[at].response.session.subject for at in (0, 3, 4)]
        self.assertEqual(subjects, ["grace", "ada", "grace"])
        self.assertTrue(results[0].response.roll_due)
        self.assertEqual(results[3].response.session, self.sessions.by_id(ada.session_id))
        reasons = [reason_pb2.ErrorReason.Name(results[at].failure.reason) for at in (1, 2)]
        self.assertEqual(reasons, ["ERR_MISSING_SESSION", "ERR_INVALID_ARGUMENT"])
        self.assertEqual(dict(results[2].failure.metadata), {"field": "session_id"})


if __name__ == "__main__":
    unittest.main()
