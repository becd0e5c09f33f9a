"""Runs a real edge with external authorization for Envoy, a session service and the development provider."""

import http.cookiejar
import json
import secrets
import subprocess
import urllib.parse
import urllib.request

from program import ROOT, Program, free_port
from service import Service

ADA = {"email": "ada@example.test", "password": "analytical-engine"}


class Provider:
    """The development provider. It prints its address when it is ready."""

    def __init__(self, redirect_uri):
        command = ["node", ROOT / "dev/idp/server.mjs", "--port", "0", "--redirect-uri", redirect_uri]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        announced = json.loads(self.process.stdout.readline())
        self.issuer = announced["issuer"]
        self.settings = {"OIDC_ISSUER_URL": announced["issuer"], "OIDC_CLIENT_ID": announced["client_id"], "OIDC_CLIENT_SECRET": announced["client_secret"]}

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()


class Edge(Program):
    """One edge. `ext_authz` is its address for Envoy; `of_sessions` has settings of the session service."""

    def __init__(self, settings=None, of_sessions=None):
        more = settings or {}
        port, self.ext_authz, admin = free_port(), f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.url = f"http://127.0.0.1:{port}"
        self.provider = Provider(f"{self.url}/api/auth/callback")
        self.sessions = Service(**self.provider.settings, **(of_sessions or {}))
        settings = self.provider.settings | {
            "EDGE_LISTEN": f"127.0.0.1:{port}",
            "EDGE_ADMIN_LISTEN": admin,
            "EDGE_BASE_URL": self.url,
            "EDGE_SECRET": secrets.token_hex(32),
            "EDGE_SESSION_SVC_URL": f"http://{self.sessions.address}",
            "EDGE_EXT_AUTHZ_LISTEN": self.ext_authz,
            "EDGE_CHECK_AUTHORIZATION": "true",
        }
        super().__init__("auth-edge", admin, settings | more)

    def sign_in(self):
        """Signs Ada in and returns her browser's `Cookie` header."""
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(jar), Stopping(f"{self.url}/landed"))
        with browser.open(f"{self.url}/api/auth/login?returnTo=/landed", timeout=20) as page:
            form = f"{page.url}/login"
        browser.open(form, data=urllib.parse.urlencode(ADA).encode(), timeout=20).close()
        [value] = [cookie.value for cookie in jar if cookie.name == "session"]
        return f"session={value}"

    def stop(self):
        code = super().stop()
        self.sessions.stop()
        self.provider.stop()
        return code


class Stopping(urllib.request.HTTPRedirectHandler):
    """Follows redirects up to this address."""

    def __init__(self, end):
        self.end = end

    def redirect_request(self, request, answer, code, message, headers, url):
        if url == self.end:
            return None
        return super().redirect_request(request, answer, code, message, headers, url)

    def http_error_302(self, request, answer, code, message, headers):
        return super().http_error_302(request, answer, code, message, headers) or answer

    http_error_303 = http_error_302
