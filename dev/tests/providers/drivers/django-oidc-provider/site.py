"""A Django site with django-oidc-provider as its documentation sets it up. Its settings come from the environment."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import django_site  # noqa: E402

django_site.configure(
    ["oidc_provider"],
    templates=django_site.LOGIN_PAGE,
    LOGIN_URL="/accounts/login/",
    OIDC_TOKEN_EXPIRE=int(os.environ["SITE_ACCESS_TOKEN_SECS"]),
    OIDC_USERINFO="__main__.userinfo",
)

from django.contrib.auth.views import LoginView  # noqa: E402
from django.urls import include, path  # noqa: E402
from oidc_provider.models import Client, ResponseType, RSAKey  # noqa: E402


def userinfo(claims, user):
    """Names the person, which django-oidc-provider leaves to the site."""
    return {**claims, "name": user.get_full_name(), "email": user.email}


urlpatterns = [
    path("accounts/login/", LoginView.as_view()),
    path("openid/", include("oidc_provider.urls", namespace="oidc_provider")),
]


def make_client():
    client = Client.objects.create(name="Vestibule", client_id=os.environ["CLIENT_ID"], client_secret=os.environ["CLIENT_SECRET"])
    client.redirect_uris = os.environ["REDIRECT_URI"].splitlines()
    client.post_logout_redirect_uris = [os.environ["POST_LOGOUT_REDIRECT_URI"]]
    client.response_types.add(ResponseType.objects.get(value="code"))
    client.save()


def take_newest_key():
    """It signs with the first key that it has, so the newest one takes the place of the others."""
    newest = django_site.keys()[0]
    RSAKey.objects.exclude(key=newest).delete()
    RSAKey.objects.get_or_create(key=newest)


if __name__ == "__main__":
    django_site.run(make_client, take_newest_key)
