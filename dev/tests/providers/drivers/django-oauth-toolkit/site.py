"""A Django site with django-oauth-toolkit as its documentation sets it up. Its settings come from the environment."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import django_site  # noqa: E402

KEYS = django_site.keys()

django_site.configure(
    ["oauth2_provider"],
    templates=django_site.LOGIN_PAGE,
    LOGIN_URL="/accounts/login/",
    OAUTH2_PROVIDER={
        "OIDC_ENABLED": True,
        "OIDC_RSA_PRIVATE_KEY": KEYS[0],
        "OIDC_RSA_PRIVATE_KEYS_INACTIVE": KEYS[1:],
        "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
        "SCOPES": {"openid": "OpenID Connect", "profile": "Name", "email": "E-mail address"},
        "OAUTH2_VALIDATOR_CLASS": "__main__.Validator",
        "ACCESS_TOKEN_EXPIRE_SECONDS": int(os.environ["SITE_ACCESS_TOKEN_SECS"]),
    },
)

from django.contrib.auth.views import LoginView  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider import urls as oauth2_urls  # noqa: E402
from oauth2_provider.models import get_application_model  # noqa: E402
from oauth2_provider.oauth2_validators import OAuth2Validator  # noqa: E402


class Validator(OAuth2Validator):
    """Says what profile and email stand for, which django-oauth-toolkit leaves to the site."""

    oidc_claim_scope = OAuth2Validator.oidc_claim_scope | {"name": "profile", "email": "email"}

    def get_additional_claims(self, request):
        return {"name": request.user.get_full_name(), "email": request.user.email}


urlpatterns = [
    path("accounts/login/", LoginView.as_view()),
    path("o/", include(oauth2_urls)),
]


def make_client():
    get_application_model().objects.create(
        name="Vestibule",
        client_id=os.environ["CLIENT_ID"],
        client_secret=os.environ["CLIENT_SECRET"],
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=os.environ["REDIRECT_URI"],
        post_logout_redirect_uris=os.environ["POST_LOGOUT_REDIRECT_URI"],
        algorithm="RS256",
    )


if __name__ == "__main__":
    django_site.run(make_client)
