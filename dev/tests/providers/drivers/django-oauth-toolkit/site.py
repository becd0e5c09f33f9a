"""A Django site with django-oauth-toolkit as its documentation sets it up, over sqlite. Its settings come from the environment."""
import os
import sys
from pathlib import Path

import django
from django.conf import settings

FOLDER = Path(os.environ["SITE_FOLDER"])
KEYS = [path.read_text() for path in sorted(FOLDER.glob("key-*.pem"), reverse=True)]  # the newest signs

settings.configure(
    SECRET_KEY="for-the-length-of-a-test",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF="__main__",
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "db.sqlite3", "OPTIONS": {"timeout": 20}}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "oauth2_provider",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ],
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {"registration/login.html": '<form method="post">{% csrf_token %}{{ form.as_p }}<input type="hidden" name="next" value="{{ next }}"><button>Log in</button></form>'},
                    ),
                    "django.template.loaders.app_directories.Loader",
                ],
            },
        }
    ],
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
# With APP_DIRS there may be no loaders.
settings.TEMPLATES[0]["APP_DIRS"] = False
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.views import LoginView  # noqa: E402
from django.core.management import execute_from_command_line  # noqa: E402
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


def make():
    """The tables, one person and one application, as the admin pages would make them."""
    execute_from_command_line(["site", "migrate", "-v", "0"])
    first, last = os.environ["ACCOUNT_NAME"].split(" ", 1)
    get_user_model().objects.create_user(
        os.environ["ACCOUNT_USERNAME"], os.environ["ACCOUNT_EMAIL"], os.environ["ACCOUNT_PASSWORD"], first_name=first, last_name=last
    )
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
    if not (FOLDER / "db.sqlite3").exists():
        make()
    execute_from_command_line(["site", "runserver", "--noreload", f"127.0.0.1:{sys.argv[1]}"])
