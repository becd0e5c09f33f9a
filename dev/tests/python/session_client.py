"""A client of the session API, as another service would write it.

The program generates the stubs from proto/session/v1 when it starts. Your service generates them when you build it:

    python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. proto/session/v1/*.proto
"""

import importlib
import json
import pathlib
import sys
import tempfile

import grpc
from grpc_tools import protoc
from google.protobuf import timestamp_pb2

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
DEADLINE = 20  # seconds; every call has one


def make_stubs():
    """Generates the Python modules of session.v1 in a temporary folder and imports them."""
    folder = tempfile.mkdtemp(prefix="session-v1-")
    files = sorted(str(path.relative_to(PROTO)) for path in (PROTO / "session/v1").glob("*.proto"))
    includes = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    code = protoc.main(["protoc", f"-I{PROTO}", f"-I{includes}", f"--python_out={folder}", f"--grpc_python_out={folder}", *files])
    if code != 0:
        raise RuntimeError(f"protoc failed with code {code}")
    sys.path.insert(0, folder)
    return [
        importlib.import_module(f"session.v1.{name}")
        for name in ("error_reason_pb2", "session_pb2", "session_service_pb2", "session_service_pb2_grpc")
    ]


reason_pb2, session_pb2, service_pb2, service_grpc = make_stubs()


def claims(**values):
    return json.dumps(values)


def at(seconds):
    """Returns the timestamp of these seconds since 1970."""
    return timestamp_pb2.Timestamp(seconds=int(seconds))


class Sessions:
    """The most frequent calls of a service, on one channel."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.stub = service_grpc.SessionServiceStub(self.channel)

    def create(self, issuer, user, access_token, expires_at, **more):
        tokens = session_pb2.TokenSet(access_token=access_token, token_type="Bearer", scope="openid profile", expires_at=at(expires_at))
        request = service_pb2.CreateSessionRequest(issuer=issuer, user=claims(**user), tokens=tokens, **more)
        return self.stub.CreateSession(request, timeout=DEADLINE)

    def by_id(self, session_id):
        return self.stub.GetSession(service_pb2.GetSessionRequest(session_id=session_id), timeout=DEADLINE).session

    def by_handle(self, handle):
        return self.stub.GetSession(service_pb2.GetSessionRequest(handle=handle), timeout=DEADLINE).session

    def roll(self, session_id):
        return self.stub.RollSession(service_pb2.RollSessionRequest(session_id=session_id), timeout=DEADLINE)

    def batch(self, *requests):
        """Returns the result of each request, in the order of the requests."""
        return self.stub.BatchGetSessions(service_pb2.BatchGetSessionsRequest(requests=requests), timeout=DEADLINE).results

    def access_token(self, session_id, *scopes):
        request = service_pb2.GetAccessTokenRequest(session_id=session_id, scopes=scopes)
        return self.stub.GetAccessToken(request, timeout=DEADLINE)

    def end(self, session_id):
        return self.stub.EndSession(service_pb2.EndSessionRequest(session_id=session_id), timeout=DEADLINE)

    def list(self, issuer, subject, page_size=0, page_token=""):
        request = service_pb2.ListSessionsRequest(issuer=issuer, subject=subject, page_size=page_size, page_token=page_token)
        return self.stub.ListSessions(request, timeout=DEADLINE)

    def update(self, session_id, version=0, **attributes):
        request = service_pb2.UpdateSessionRequest(session_id=session_id, attributes=claims(**attributes), version=version)
        return self.stub.UpdateSession(request, timeout=DEADLINE).session

    def watch(self, **request):
        """Returns a stream of events without a deadline. The caller closes it."""
        return self.stub.WatchSessions(service_pb2.WatchSessionsRequest(**request))

    def close(self):
        self.channel.close()
