"""Lets a request pass if its X-Auth-Assertion is valid, and greets its user."""
import os

import jwt
from flask import Flask, abort, g, request

ISSUER, AUDIENCE = os.environ["VESTIBULE_ISSUER"], os.environ["AUDIENCE"]
KEYS_URL = os.environ.get("KEYS_URL", f"{ISSUER}/.well-known/vestibule/jwks.json")
KEYS = jwt.PyJWKClient(KEYS_URL, lifespan=300, cooldown_duration=10, timeout=5)
REQUIRED = {"require": ["exp", "iss", "aud", "sub", "email"]}

app = Flask(__name__)


@app.before_request
def require_user():
    try:
        token = request.headers.get("X-Auth-Assertion", "")
        key = KEYS.get_signing_key_from_jwt(token)
        verified = jwt.decode_complete(
            token, key, algorithms=["ES256"], issuer=ISSUER, audience=AUDIENCE, leeway=5, options=REQUIRED
        )
        if verified["header"].get("typ") != "JWT":
            raise jwt.InvalidTokenError("another type")
    except jwt.PyJWTError:
        abort(401)
    g.user = {"subject": verified["payload"]["sub"], "email": verified["payload"]["email"]}


@app.get("/")
def greet():
    return f"Hello {g.user['email']}\n", {"Content-Type": "text/plain"}


app.run(host="127.0.0.1", port=int(os.environ.get("PORT", "8080")))
