"""A service that uses the session API, in Python. docs/session-api.md explains each function.

    pip install -r requirements.txt
    python -m grpc_tools.protoc -I ../../../proto --python_out=gen --grpc_python_out=gen ../../../proto/session/v1/*.proto
    export PYTHONPATH=gen SESSION_SVC=127.0.0.1:50051   # with TLS: SESSION_CA, SESSION_CERT and SESSION_KEY, PEM files

    python session_api.py look-up HANDLE
    SESSION_ID=… python session_api.py call-api URL SCOPE
    SESSION_ID=… python session_api.py remember KEY VALUE
    python session_api.py end-all ISSUER SUBJECT
    python session_api.py watch

A session ID is a secret: it comes from the environment, because others can read a program's arguments.
"""

import asyncio
import json
import os
import random
import sys
import urllib.request

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from session.v1 import session_pb2, session_service_pb2 as api, session_service_pb2_grpc

DEADLINE = 5  # seconds, for every call
TOKEN_DEADLINE = 20  # the session service may wait for the provider

# gRPC retries calls that it may send twice if no replica was reached.
REPEATABLE = ["GetSession", "BatchGetSessions", "ListSessions", "RollSession", "GetAccessToken", "EndSession", "EndSessions"]
CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],  # uses all addresses of the name in turn
    "methodConfig": [
        {
            "name": [{"service": "session.v1.SessionService", "method": method} for method in REPEATABLE],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.02s",
                "maxBackoff": "0.5s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}
OPTIONS = [("grpc.service_config", json.dumps(CONFIG))]


def channel(package=grpc):
    """A channel for the whole program; it connects with the first call. For asyncio, package is grpc.aio."""
    address = os.environ.get("SESSION_SVC", "127.0.0.1:50051")
    if "SESSION_CA" not in os.environ:
        return package.insecure_channel(address, options=OPTIONS)
    files = [os.environ.get(name) for name in ("SESSION_CA", "SESSION_KEY", "SESSION_CERT")]
    pem = [open(file, "rb").read() if file else None for file in files]
    return package.secure_channel(address, grpc.ssl_channel_credentials(*pem), options=OPTIONS)


def reason(error):
    """The ErrorInfo of a failure; empty if the failure does not come from the service."""
    info = error_details_pb2.ErrorInfo()
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        if detail.Unpack(info) and info.domain == "session.v1":
            return info
    return error_details_pb2.ErrorInfo()


# Reasons for which only a new sign-in helps.
SIGN_IN = {
    "ERR_MISSING_SESSION",
    "ERR_MISSING_ACCESS_TOKEN",
    "ERR_MISSING_REFRESH_TOKEN",
    "ERR_EXPIRED_ACCESS_TOKEN",
    "ERR_FAILED_REFRESH_GRANT",
}


def look_up(sessions, handle):
    """Prints the user of a session."""
    try:
        session = sessions.GetSession(api.GetSessionRequest(handle=handle), timeout=DEADLINE).session
    except grpc.RpcError as error:
        if reason(error).reason not in SIGN_IN:
            raise  # such as UNAVAILABLE: the state is unknown, so this is not "signed out"
        print("no user is signed in:", reason(error).reason)
        return
    if session.state == session_pb2.Session.STATE_NEEDS_SIGN_IN:
        print(session.subject, "has to sign in again before an API can be called")
    else:
        print(session.subject, "is signed in")


def call_api(sessions, url, scope):
    """Calls an API for the user. It asks for the token each time: the session service refreshes an expired one."""
    request = api.GetAccessTokenRequest(session_id=os.environ["SESSION_ID"], scopes=[scope])
    try:
        token = sessions.GetAccessToken(request, timeout=TOKEN_DEADLINE)
    except grpc.RpcError as error:
        why = reason(error)
        if why.reason in SIGN_IN:
            print("sign in again:", why.reason)
        elif why.reason == "ERR_INSUFFICIENT_SCOPE":
            print("not granted:", why.metadata["scopes"])
        else:
            raise
        return
    call = urllib.request.Request(url, headers={"Authorization": f"Bearer {token.access_token}"})
    with urllib.request.urlopen(call, timeout=DEADLINE) as answer:
        print(answer.read().decode())


def remember(sessions, key, value):
    """Stores a value with the session. Another caller may change the session between read and write: then the version is
    stale, and this makes the change again on the current session."""
    session_id = os.environ["SESSION_ID"]
    while True:
        session = sessions.GetSession(api.GetSessionRequest(session_id=session_id), timeout=DEADLINE).session
        attributes = json.dumps(json.loads(session.attributes) | {key: value})
        change = api.UpdateSessionRequest(session_id=session_id, attributes=attributes, version=session.version)
        try:
            sessions.UpdateSession(change, timeout=DEADLINE)
        except grpc.RpcError as error:
            if reason(error).reason != "ERR_STALE_VERSION":
                raise
            print("another caller changed the session: trying again")
        else:
            print("remembered")
            return


def end_all(sessions, issuer, subject):
    """Lists a user's sessions page by page, and ends them. (EndSessions ends them all in one call.)"""
    request = api.ListSessionsRequest(issuer=issuer, subject=subject, page_size=100)
    while True:
        page = sessions.ListSessions(request, timeout=DEADLINE)
        for session in page.sessions:
            end = api.EndSessionRequest(handle=session.handle, cause=session_pb2.CAUSE_OPERATOR)
            # It is no failure if another caller has ended the session meanwhile.
            ended = sessions.EndSession(end, timeout=DEADLINE).ended
            print(session.handle, "ended" if ended else "was gone")
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


BEATS = 3  # a stream is dead after this many of its heartbeat intervals without an event
PAUSE, PAUSE_MAX = 0.05, 5  # seconds between two attempts, doubled each time
Event, CAUSES = session_pb2.SessionEvent, {number: name for name, number in session_pb2.Cause.items()}


async def watch():
    """Prints every ending while the program runs. It opens the stream again when it ends, and continues after the last
    event. If that is not possible, the service sends MISSED."""
    sessions = session_service_pb2_grpc.SessionServiceStub(channel(grpc.aio))
    resume_token, first, pause = "", True, PAUSE
    while True:
        stream = sessions.WatchSessions(api.WatchSessionsRequest(resume_token=resume_token))
        live, silence = False, DEADLINE
        try:
            while True:
                event = await asyncio.wait_for(stream.read(), silence)
                if event is grpc.aio.EOF:
                    break
                resume_token = event.resume_token
                if event.kind == Event.KIND_ENDED:
                    print("ended", event.handle, CAUSES.get(event.cause, "CAUSE_OTHER"), flush=True)
                elif event.kind == Event.KIND_MISSED:
                    print("missed: read cached sessions again", flush=True)
                elif event.kind == Event.KIND_HEARTBEAT:
                    silence = BEATS * event.heartbeat_interval.ToTimedelta().total_seconds()
                    if not live:  # the service has sent all earlier events
                        print("live: read the sessions you need" if first else "live again", flush=True)
                    live, first, pause = True, False, PAUSE
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
                raise  # the same request fails the same way
        except asyncio.TimeoutError:
            pass
        stream.cancel()
        if live:
            print("lost: do not trust cached sessions", flush=True)
        await asyncio.sleep(random.uniform(pause / 2, pause))
        pause = min(2 * pause, PAUSE_MAX)


def main(arguments):
    match arguments:
        case ["watch"]:
            return asyncio.run(watch())
        case ["look-up" | "call-api" | "remember" | "end-all" as name, *rest]:
            with channel() as connected:
                sessions = session_service_pb2_grpc.SessionServiceStub(connected)
                do = {"look-up": look_up, "call-api": call_api, "remember": remember, "end-all": end_all}[name]
                return do(sessions, *rest)
        case _:
            return "look-up HANDLE | call-api URL SCOPE | remember KEY VALUE | end-all ISSUER SUBJECT | watch"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
