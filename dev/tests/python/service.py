"""Runs a real session service on free ports of loopback, and a provider for it."""

import http.server
import json
import secrets
import tempfile
import threading

from program import Program, free_port

ISSUER = "https://idp.example.test"


class Service(Program):
    """One session service with a file store. `restart` kills it with SIGKILL and starts it again."""

    def __init__(self, ready=True, **settings):
        folder = tempfile.TemporaryDirectory(prefix="vestibule-python-")
        self.address = f"127.0.0.1:{free_port()}"
        admin = f"127.0.0.1:{free_port()}"
        settings = {
            "SESSION_LISTEN": self.address,
            "SESSION_ADMIN_LISTEN": admin,
            "SESSION_STORE": f"file:{folder.name}/sessions.redb",
            "SESSION_ENCRYPTION_KEY": secrets.token_hex(32),
            "SESSION_MAX_PER_SUBJECT": "0",  # tests of pages need more sessions than the default limit
            "OIDC_ISSUER_URL": ISSUER,
            "OIDC_CLIENT_ID": "vestibule",
            "OIDC_CLIENT_SECRET": secrets.token_hex(16),
        } | settings
        super().__init__("session-svc", admin, settings, folder, ready)


class RefusingProvider:
    """A provider whose token endpoint rejects every refresh."""

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
