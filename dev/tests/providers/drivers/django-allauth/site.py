"""A Django site with django-allauth as an identity provider, as its documentation sets it up. Its settings come from the environment."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import django_site  # noqa: E402

KEYS = django_site.keys()

django_site.configure(
    ["allauth", "allauth.account", "allauth.idp.oidc"],
    middleware=["allauth.account.middleware.AccountMiddleware"],
    AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.ModelBackend", "allauth.account.auth_backends.AuthenticationBackend"],
    ACCOUNT_EMAIL_VERIFICATION="none",
    ACCOUNT_RATE_LIMITS=False,  # the suite signs in more often than a person does
    IDP_OIDC_PRIVATE_KEYS=[{"pem": pem, "issued_at": f"2026-01-{len(KEYS) - place:02}T00:00:00Z"} for place, pem in enumerate(KEYS)],
    IDP_OIDC_JWKS_CACHE_CONTROL=0,
    IDP_OIDC_ACCESS_TOKEN_EXPIRES_IN=int(os.environ["SITE_ACCESS_TOKEN_SECS"]),
)

from allauth.account.models import EmailAddress  # noqa: E402
from allauth.idp.oidc.models import Client  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.urls import include, path  # noqa: E402

urlpatterns = [path("", include("allauth.idp.urls")), path("accounts/", include("allauth.account.urls"))]


def make_client():
    user = get_user_model().objects.get()
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
    client = Client(id=os.environ["CLIENT_ID"], name="Vestibule", redirect_uris=os.environ["REDIRECT_URI"])
    client.set_secret(os.environ["CLIENT_SECRET"])
    client.set_scopes(["openid", "profile", "email"])
    client.set_grant_types(["authorization_code", "refresh_token"])
    client.set_post_logout_redirect_uris([os.environ["POST_LOGOUT_REDIRECT_URI"]])
    client.save()


if __name__ == "__main__":
    django_site.run(make_client)
