"""Creates sessions of many people at a running session service, to try the operators' console.

    python seed_people.py 127.0.0.1:50051 ISSUER 10000 100000     people, sessions
"""

import collections
import sys
import time

from session_client import Sessions, at, claims, service_pb2, session_pb2

AT_ONCE = 200  # calls
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
)
NAMES = ("Ada Lovelace", "Grace Hopper", "Édouard Lucas", "علي حسن", "山田 花子", "Wolfeschlegelsteinhausenbergerdorff Konstantin")


def session_of(number, issuer, people):
    """The session of this number: its person, browser and address follow from the number."""
    person = number % people
    user = claims(
        sub=f"person-{person}",
        name=f"{NAMES[person % len(NAMES)]} {person}",
        email=f"person-{person}@example.test",
        email_verified=True,
    )
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    device = session_pb2.Device(user_agent=AGENTS[number % len(AGENTS)], address=address)
    tokens = session_pb2.TokenSet(access_token="a", token_type="Bearer", scope="openid", expires_at=at(time.time() + 300))
    return service_pb2.CreateSessionRequest(issuer=issuer, user=user, tokens=tokens, device=device)


def main(address, issuer, people, count):
    sessions = Sessions(address)
    open_calls = collections.deque()
    for number in range(int(count)):
        if len(open_calls) >= AT_ONCE:
            open_calls.popleft().result()
        open_calls.append(sessions.stub.CreateSession.future(session_of(number, issuer, int(people)), timeout=60))
    for call in open_calls:
        call.result()
    sessions.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
