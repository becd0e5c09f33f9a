"""Lets a request pass if its X-Auth-Assertion is valid, and greets its user."""
import os
import sys

import jwt
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path

ISSUER, AUDIENCE = os.environ["VESTIBULE_ISSUER"], os.environ["AUDIENCE"]
KEYS_URL = os.environ.get("KEYS_URL", f"{ISSUER}/.well-known/vestibule/jwks.json")
KEYS = jwt.PyJWKClient(KEYS_URL, lifespan=300, cooldown_duration=10, timeout=5)
REQUIRED = {"require": ["exp", "iss", "aud", "sub", "email"]}


def require_user(get_response):
    def middleware(request):
        try:
            token = request.headers.get("X-Auth-Assertion", "")
            key = KEYS.get_signing_key_from_jwt(token)
            verified = jwt.decode_complete(
                token, key, algorithms=["ES256"], issuer=ISSUER, audience=AUDIENCE, leeway=5, options=REQUIRED
            )
            if verified["header"].get("typ") != "JWT":
                raise jwt.InvalidTokenError("another type")
        except jwt.PyJWTError:
            return HttpResponse("No valid assertion\n", status=401)
        request.person = {"subject": verified["payload"]["sub"], "email": verified["payload"]["email"]}
        return get_response(request)

    return middleware


def greet(request):
    return HttpResponse(f"Hello {request.person['email']}\n", content_type="text/plain")


urlpatterns = [path("", greet)]
settings.configure(ROOT_URLCONF=__name__, MIDDLEWARE=[f"{__name__}.require_user"], ALLOWED_HOSTS=["127.0.0.1"])
execute_from_command_line([sys.argv[0], "runserver", "--noreload", f"127.0.0.1:{os.environ.get('PORT', '8080')}"])
