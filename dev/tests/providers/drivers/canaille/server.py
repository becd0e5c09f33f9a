"""Canaille on SQLite, served by hypercorn. Its settings come from the environment; SIGHUP changes its keys.

Not on its memory store, which finds what has one of the values asked for, not all: while a code of the same client is left over, as
after a wrong secret, a fresh one may be taken for it and refused.
"""
import asyncio
import datetime
import os
import signal
import sys
import tempfile
import time
import uuid

from asgiref.wsgi import WsgiToAsgi
from hypercorn.asyncio import serve
from hypercorn.config import Config
from joserfc.jwk import RSAKey

from canaille import create_app
from canaille.app import models

ADDRESS = f"127.0.0.1:{sys.argv[1]}"
SECONDS = int(os.environ["SITE_ACCESS_TOKEN_SECS"])


def key():
    return RSAKey.generate_key(2048, auto_kid=True).as_dict(private=True)


store = tempfile.TemporaryDirectory()
app = create_app(
    {
        "SECRET_KEY": str(uuid.uuid4()),
        "SERVER_NAME": ADDRESS,
        "PREFERRED_URL_SCHEME": "http",
        "SESSION_COOKIE_SECURE": False,
        "OAUTH2_TOKEN_EXPIRES_IN": {"authorization_code": SECONDS, "refresh_token": SECONDS},
        "CANAILLE": {"CAPTCHA_ENABLED": False},
        "CANAILLE_OIDC": {"ACTIVE_JWKS": [key()], "TRUSTED_DOMAINS": []},
        "CANAILLE_HYPERCORN": {},
        "CANAILLE_SQL": {"DATABASE_URI": f"sqlite:///{store.name}/canaille.sqlite"},
    },
)


def make():
    """One person and one client, as the administration pages would make them."""
    first, last = os.environ["ACCOUNT_NAME"].split(" ", 1)
    user = models.User(
        user_name=os.environ["ACCOUNT_USERNAME"],
        password=os.environ["ACCOUNT_PASSWORD"],
        given_name=first,
        family_name=last,
        formatted_name=os.environ["ACCOUNT_NAME"],
        emails=[os.environ["ACCOUNT_EMAIL"]],
    )
    client = models.Client(
        client_id=os.environ["CLIENT_ID"],
        client_secret=os.environ["CLIENT_SECRET"],
        client_name="Vestibule",
        client_id_issued_at=datetime.datetime.now(datetime.timezone.utc),
        redirect_uris=[os.environ["REDIRECT_URI"]],
        post_logout_redirect_uris=[os.environ["POST_LOGOUT_REDIRECT_URI"]],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        scope=["openid", "profile", "email"],
        token_endpoint_auth_method=os.environ.get("CLIENT_AUTH", "client_secret_basic"),
        jwks_uri=os.environ.get("CLIENT_JWKS_URI"),
    )
    app.backend.save(user)
    app.backend.save(client)
    client.audience = [client]
    app.backend.save(client)


class OneTokenASecond:
    """Lets the token endpoint answer once in a second: two access tokens of one second are the same, and the second is answered 500."""

    def __init__(self, provider):
        self.provider, self.turn, self.last = provider, asyncio.Lock(), 0

    async def __call__(self, scope, receive, send):
        if scope.get("path") != "/oauth/token":
            return await self.provider(scope, receive, send)
        async with self.turn:
            await asyncio.sleep(max(0, self.last + 1 - time.time()))
            await self.provider(scope, receive, send)
            self.last = int(time.time())


def change_keys():
    settings = app.config["CANAILLE_OIDC"]
    settings["INACTIVE_JWKS"] = settings["ACTIVE_JWKS"]
    settings["ACTIVE_JWKS"] = [key()]


async def main():
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, change_keys)
    config = Config()
    config.bind = [ADDRESS]
    await serve(OneTokenASecond(WsgiToAsgi(app)), config, shutdown_trigger=stopped.wait)


with app.app_context(), app.backend.session():
    make()
asyncio.run(main())
