"""ReadSessions: many questions over one call, each with an answer of its own."""

import queue
import time
import unittest

import grpc

from service import ISSUER, Service
from session_client import Sessions, reason_pb2, service_pb2

Question = service_pb2.ReadSessionsRequest
NOWHERE = "0" * 32


def get(number, **by):
    return Question(number=number, get=service_pb2.GetSessionRequest(**by))


def roll(number, session_id, **more):
    return Question(number=number, roll=service_pb2.RollSessionRequest(session_id=session_id), **more)


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service(SESSION_STORE="memory:", SESSION_ROLL_INTERVAL="0")
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.open()

    def open(self, service=None):
        """Opens a call; what is put into `self.questions` is asked over it, and None ends it."""
        self.sessions = Sessions((service or self.service).address)
        self.addCleanup(self.sessions.close)
        self.questions = queue.SimpleQueue()
        self.answers = self.sessions.read(iter(self.questions.get, None))
        self.addCleanup(self.questions.put, None)
        self.addCleanup(self.answers.cancel)

    def begin(self, subject):
        return self.sessions.create(ISSUER, {"sub": subject}, "access", time.time() + 600)

    def ask(self, *questions):
        """The answers to these questions, by their numbers."""
        for question in questions:
            self.questions.put(question)
        answers = [next(self.answers) for _ in questions]
        return {answer.number: answer for answer in answers}

    def reason(self, answer):
        self.assertFalse(answer.HasField("session"))
        return reason_pb2.ErrorReason.Name(answer.failure.reason)

    def test_two_questions_over_one_call_have_their_answers(self):
        ada, grace = self.begin("ada"), self.begin("grace")
        answers = self.ask(get(1, session_id=ada.session_id), roll(2, grace.session_id))
        self.assertEqual(answers.keys(), {1, 2})
        self.assertEqual((answers[1].session.subject, answers[1].rolled), ("ada", False))
        self.assertEqual((answers[2].session.subject, answers[2].rolled), ("grace", True))
        self.assertFalse(answers[1].HasField("failure") or answers[2].HasField("failure"))
        by_handle = self.ask(get(3, handle=ada.session.handle))[3]
        self.assertEqual(by_handle.session, self.sessions.by_id(ada.session_id))
        self.questions.put(None)
        self.assertEqual(list(self.answers), [])
        self.assertEqual(self.answers.code(), grpc.StatusCode.OK)

    def test_a_failure_has_its_reason_and_the_call_goes_on(self):
        answers = self.ask(get(1, session_id=NOWHERE), roll(2, "not-an-id"), Question(number=3))
        self.assertEqual(self.reason(answers[1]), "ERR_MISSING_SESSION")
        self.assertEqual(self.reason(answers[2]), "ERR_INVALID_ARGUMENT")
        self.assertEqual(dict(answers[2].failure.metadata), {"field": "session_id"})
        self.assertEqual(self.reason(answers[3]), "ERR_UNIMPLEMENTED")
        created = self.begin("alan")
        answer = self.ask(get(4, session_id=created.session_id))[4]
        self.assertEqual(answer.session.handle, created.session.handle)

    def test_a_drain_sends_the_caller_elsewhere_and_ends_the_call_without_an_error(self):
        service = Service()
        self.open(service)
        self.assertEqual(self.reason(self.ask(get(1, session_id=NOWHERE))[1]), "ERR_MISSING_SESSION")
        self.assertEqual(service.stop(), 0)
        self.assertEqual([answer.number for answer in self.answers], [0])
        self.assertEqual(self.answers.code(), grpc.StatusCode.OK)


if __name__ == "__main__":
    unittest.main()
