"""What the Django sites of the providers have in common: sqlite in a folder, one person, and the start of the server."""

import os
import sys
from pathlib import Path

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import execute_from_command_line

FOLDER = Path(os.environ["SITE_FOLDER"])


def configure(apps, middleware=(), templates=None, **more):
    """Sets Django up with what a site adds."""
    settings.configure(
        SECRET_KEY="for-the-length-of-a-test",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="__main__",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "db.sqlite3", "OPTIONS": {"timeout": 20}}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages", *apps],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            *middleware,
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ],
                    "loaders": [("django.template.loaders.locmem.Loader", templates or {}), "django.template.loaders.app_directories.Loader"],
                },
            }
        ],
        **more,
    )
    django.setup()


LOGIN_PAGE = {"registration/login.html": '<form method="post">{% csrf_token %}{{ form.as_p }}<input type="hidden" name="next" value="{{ next }}"><button>Log in</button></form>'}


def keys():
    """The keys in the site's folder, the newest first."""
    number = lambda path: int(path.stem.removeprefix("key-"))
    return [path.read_text() for path in sorted(FOLDER.glob("key-*.pem"), key=number, reverse=True)]


def make_person():
    """Creates the person whom the suite signs in."""
    first, last = os.environ["ACCOUNT_NAME"].split(" ", 1)
    get_user_model().objects.create_user(os.environ["ACCOUNT_USERNAME"], os.environ["ACCOUNT_EMAIL"], os.environ["ACCOUNT_PASSWORD"], first_name=first, last_name=last)


def run(make_client, before=lambda: None):
    """Serves at the port that is the first argument. `before` runs at each start."""
    if not (FOLDER / "db.sqlite3").exists():
        execute_from_command_line(["site", "migrate", "-v", "0"])
        make_person()
        make_client()
    before()
    execute_from_command_line(["site", "runserver", "--noreload", f"127.0.0.1:{sys.argv[1]}"])
