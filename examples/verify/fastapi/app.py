"""Lets a request pass if its X-Auth-Assertion is valid, and greets its user."""
import os
from typing import Annotated

import jwt
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse

ISSUER, AUDIENCE = os.environ["VESTIBULE_ISSUER"], os.environ["AUDIENCE"]
KEYS_URL = os.environ.get("KEYS_URL", f"{ISSUER}/.well-known/vestibule/jwks.json")
KEYS = jwt.PyJWKClient(KEYS_URL, lifespan=300, cooldown_duration=10, timeout=5)
REQUIRED = {"require": ["exp", "iss", "aud", "sub", "email"]}


def read_user(request: Request) -> dict:
    try:
        [token] = request.headers.getlist("x-auth-assertion")
        key = KEYS.get_signing_key_from_jwt(token)
        verified = jwt.decode_complete(
            token, key, algorithms=["ES256"], issuer=ISSUER, audience=AUDIENCE, leeway=5, options=REQUIRED
        )
        if verified["header"].get("typ") != "JWT":
            raise jwt.InvalidTokenError("another type")
    except (ValueError, jwt.PyJWTError) as error:
        raise HTTPException(401, "No valid assertion") from error
    return {"subject": verified["payload"]["sub"], "email": verified["payload"]["email"]}


app = FastAPI()


@app.get("/")
def greet(user: Annotated[dict, Depends(read_user)]) -> PlainTextResponse:
    return PlainTextResponse(f"Hello {user['email']}\n")


uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")))
