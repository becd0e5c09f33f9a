"""A server from Python's standard library that reads bodies by their framing and says what it got."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LINE_MAX = 1024  # bytes of a line of the framing
SEEN = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        SEEN.append(self.path)
        if self.path.endswith("/close"):
            self.close_connection = True
            return
        if self.path.endswith("/early"):
            self.say()
            self.read_body()
        else:
            self.read_body()
            self.say()

    def read_body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(LINE_MAX), 16):
                self.rfile.read(size + 2)
            while self.rfile.readline(LINE_MAX) not in (b"\r\n", b""):
                pass
        else:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def say(self):
        answer = {"method": self.command, "url": self.path, "subjects": self.headers.get_all("X-Auth-Subject", [])}
        if self.path.endswith("/seen"):
            answer = SEEN
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, format, *args):
        pass


for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
    setattr(Handler, f"do_{method}", Handler.answer)

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
