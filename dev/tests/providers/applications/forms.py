"""A Django site with a form, its settings as `startproject` writes them: sessions, and the check of where a form comes from."""
import sys

from django.conf import settings

settings.configure(
    SECRET_KEY="for-the-length-of-a-test",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF="__main__",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    INSTALLED_APPS=["django.contrib.sessions"],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)

from django.core.management import execute_from_command_line  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.shortcuts import redirect  # noqa: E402
from django.template import engines  # noqa: E402
from django.urls import path  # noqa: E402

PAGE = '<p id="said">{{ said }}</p><p id="subject">{{ subject }}</p><p id="user">{{ user }}</p><form method="post">{% csrf_token %}<input name="said"><button>Say</button></form>'


def form(request):
    if request.method == "POST":
        request.session["said"] = request.POST["said"]
        return redirect(request.build_absolute_uri("/form"))
    values = {"said": request.session.get("said", ""), "subject": request.headers.get("X-Auth-Subject", ""), "user": request.headers.get("Remote-User", "")}
    return HttpResponse(engines["django"].from_string(PAGE).render(values, request))


urlpatterns = [path("form", form), path("", lambda request: HttpResponse("ready"))]

if __name__ == "__main__":
    execute_from_command_line(["site", "runserver", "--noreload", f"127.0.0.1:{sys.argv[1]}"])
