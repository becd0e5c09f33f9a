"""Tests WatchSessions: order, resumption, and a report of each missed event."""

import time
import unittest

from service import ISSUER, Service
from session_client import Sessions, service_pb2, session_pb2

Event = session_pb2.SessionEvent
MORE_THAN_KEPT = 8_400  # events; a memory store keeps 8,192
AT_ONCE = 200


class Watching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service(SESSION_STORE="memory:", SESSION_ROLL_INTERVAL="0")
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.sessions = Sessions(self.service.address)
        self.addCleanup(self.sessions.close)

    def begin(self, subject="ada"):
        return self.sessions.create(ISSUER, {"sub": subject}, "access", time.time() + 600)

    def watch(self, **request):
        stream = self.sessions.watch(**request)
        self.addCleanup(stream.cancel)
        return stream

    def next(self, stream):
        """Returns the next event that is no heartbeat."""
        return next(event for event in stream if event.kind != Event.KIND_HEARTBEAT)

    def test_the_first_word_is_a_heartbeat_with_a_token_to_resume_from(self):
        stream = self.watch()
        first = next(stream)
        self.assertEqual(first.kind, Event.KIND_HEARTBEAT)
        stream.cancel()
        created = self.begin()
        event = self.next(self.watch(resume_token=first.resume_token))
        self.assertEqual((event.kind, event.handle), (Event.KIND_CREATED, created.session.handle))

    def test_a_life_is_told_in_order_and_goes_on_after_any_of_its_events(self):
        stream = self.watch(issuer=ISSUER, subject="grace")
        next(stream)
        created = self.begin("grace")
        self.sessions.roll(created.session_id)
        self.sessions.update(created.session_id, note="changed")
        self.sessions.end(created.session_id)
        received = [self.next(stream) for _ in range(4)]
        kinds = [Event.KIND_CREATED, Event.KIND_ROLLED, Event.KIND_CHANGED, Event.KIND_ENDED]
        self.assertEqual([event.kind for event in received], kinds)
        self.assertEqual({event.handle for event in received}, {created.session.handle})
        self.assertEqual(received[-1].cause, session_pb2.CAUSE_LOGOUT)
        for at, event in enumerate(received[:-1]):
            again = self.watch(issuer=ISSUER, subject="grace", resume_token=event.resume_token)
            self.assertEqual([self.next(again).kind for _ in kinds[at + 1 :]], kinds[at + 1 :])

    def test_who_watches_one_session_or_person_hears_of_no_other(self):
        mine, other = self.begin("alan"), self.begin("alan")
        of_one, of_person = self.watch(handle=mine.session.handle), self.watch(issuer=ISSUER, subject="alan")
        next(of_one), next(of_person)
        self.sessions.end(self.begin("edsger").session_id)
        self.sessions.end(other.session_id)
        self.sessions.end(mine.session_id)
        self.assertEqual(self.next(of_one).handle, mine.session.handle)
        self.assertEqual([self.next(of_person).handle for _ in range(2)], [other.session.handle, mine.session.handle])

    def test_a_token_that_is_too_old_is_told_as_missed_and_the_watch_goes_on(self):
        stream = self.watch()
        old = next(stream).resume_token
        stream.cancel()
        created = self.begin("busy")
        roll = service_pb2.RollSessionRequest(session_id=created.session_id)
        for _ in range(MORE_THAN_KEPT // AT_ONCE):
            rolls = [self.sessions.stub.RollSession.future(roll, timeout=60) for _ in range(AT_ONCE)]
            for answer in rolls:
                answer.result()
        late = self.begin("late")
        # Simultaneous rolls are one event, so write until the service has dropped the first event.
        for _ in range(100):
            stream = self.watch(resume_token=old)
            if self.next(stream).kind == Event.KIND_MISSED:
                break
            stream.cancel()
            for _ in range(AT_ONCE):
                self.sessions.roll(created.session_id)
        else:
            self.fail("the oldest events are still kept")
        self.sessions.end(late.session_id)
        ended = next(event for event in stream if event.kind == Event.KIND_ENDED)
        self.assertEqual(ended.handle, late.session.handle)

    def test_a_token_of_another_store_is_told_as_missed(self):
        stream = self.watch(resume_token="of-another-store")
        self.assertEqual(self.next(stream).kind, Event.KIND_MISSED)

    def test_a_drain_ends_the_watch_without_an_error(self):
        service = Service()
        sessions = Sessions(service.address)
        self.addCleanup(sessions.close)
        stream = sessions.watch()
        next(stream)
        self.assertEqual(service.stop(), 0)
        for event in stream:
            self.assertEqual(event.kind, Event.KIND_HEARTBEAT)
        self.assertEqual(stream.code().name, "OK")


if __name__ == "__main__":
    unittest.main()
