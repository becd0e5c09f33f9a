"""Tests pages during changes, repeated writes and conflicting writes."""

import concurrent.futures
import json
import time
import unittest
import uuid

from service import ISSUER, Service
from session_client import Sessions


class ListsAndWrites(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.sessions = Sessions(self.service.address)
        self.addCleanup(self.sessions.close)

    def begin(self, subject, **more):
        return self.sessions.create(ISSUER, {"sub": subject}, "access", time.time() + 600, **more)

    def test_pages_show_every_lasting_session_once_while_others_come_and_go(self):
        there = [self.begin("ada") for _ in range(7)]
        handles = [created.session.handle for created in reversed(there)]
        first = self.sessions.list(ISSUER, "ada", 3)
        self.assertEqual([session.handle for session in first.sessions], handles[:3])
        # The last session of the page ends, a later one ends, and a new one starts.
        self.sessions.end(there[4].session_id)
        self.sessions.end(there[2].session_id)
        new = self.begin("ada").session.handle
        shown, token = [], first.next_page_token
        while token:
            page = self.sessions.list(ISSUER, "ada", 3, token)
            shown += [session.handle for session in page.sessions]
            token = page.next_page_token
        self.assertEqual(shown, [handle for handle in handles[3:] if handle != there[2].session.handle])
        self.assertNotIn(new, shown)
        self.assertEqual(self.sessions.list(ISSUER, "ada", 1).sessions[0].handle, new)

    def test_no_page_is_longer_than_200_and_0_means_50(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: self.begin("crowd"), range(205)))
        self.assertEqual(len(self.sessions.list(ISSUER, "crowd").sessions), 50)
        page = self.sessions.list(ISSUER, "crowd", 1_000)
        self.assertEqual(len(page.sessions), 200)
        self.assertEqual(len(self.sessions.list(ISSUER, "crowd", 1_000, page.next_page_token).sessions), 5)

    def test_a_request_id_makes_one_session_however_often_and_at_once_it_is_sent(self):
        request_id = str(uuid.uuid4())
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            expires = time.time() + 600
            create = lambda _: self.sessions.create(ISSUER, {"sub": "grace"}, "access", expires, request_id=request_id)
            ids = {created.session_id for created in pool.map(create, range(32))}
        self.assertEqual(len(ids), 1)
        self.assertEqual(len(self.sessions.list(ISSUER, "grace").sessions), 1)

    def test_writers_that_send_the_version_they_read_lose_nothing(self):
        created = self.begin("alan")

        def count(_):
            while True:
                session = self.sessions.by_id(created.session_id)
                try:
                    self.sessions.update(created.session_id, session.version, count=json.loads(session.attributes).get("count", 0) + 1)
                    return
                except Exception as error:
                    self.assertEqual(error.code().name, "ABORTED")

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(count, range(20)))
        session = self.sessions.by_id(created.session_id)
        self.assertEqual(json.loads(session.attributes)["count"], 20)
        self.assertEqual(session.version, created.session.version + 20)


if __name__ == "__main__":
    unittest.main()
