"""A real session service on free ports of loopback, and a provider for it."""

import http.server
import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / "session-svc"
ISSUER = "https://idp.example.test"
READY_SECONDS = 60


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Service:
    """One session service with a file store; `restart` kills it outright and starts it again."""

    def __init__(self, ready=True, **settings):
        self.folder = tempfile.TemporaryDirectory(prefix="vestibule-python-")
        self.address = f"127.0.0.1:{free_port()}"
        self.admin = f"127.0.0.1:{free_port()}"
        self.ready = ready
        self.settings = {
            "SESSION_LISTEN": self.address,
            "SESSION_ADMIN_LISTEN": self.admin,
            "SESSION_STORE": f"file:{self.folder.name}/sessions.redb",
            "SESSION_ENCRYPTION_KEY": secrets.token_hex(32),
            "OIDC_ISSUER_URL": ISSUER,
            "OIDC_CLIENT_ID": "vestibule",
            "OIDC_CLIENT_SECRET": secrets.token_hex(16),
        } | settings
        self.start()

    def start(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_", "EDGE_", "OIDC_"))}
        self.log = open(f"{self.folder.name}/log", "ab")
        self.process = subprocess.Popen([PROGRAM], env=inherited | self.settings, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + READY_SECONDS
        while not self.answers("readyz" if self.ready else "livez"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(pathlib.Path(f"{self.folder.name}/log").read_text())
            time.sleep(0.02)

    def answers(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.admin}/{path}", timeout=1) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

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


class RefusingProvider:
    """A provider whose token endpoint refuses every refresh."""

    def __init__(self):
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                body = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer(200, {"keys": []} if self.path == "/jwks" else provider.metadata())

            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.answer(400, {"error": "invalid_grant"})

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def metadata(self):
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
