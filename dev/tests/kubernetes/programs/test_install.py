"""Runs the commands of docs/kubernetes/install.md and helm.md without a cluster, and checks the result."""

import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import chart  # noqa: E402
import matrix  # noqa: E402
from mounted import certificate, check, mount, variables  # noqa: E402
from pair import Pair  # noqa: E402

PROGRAMS = matrix.ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug"
PAGES = matrix.ROOT / "docs/kubernetes"
# Renders, and records Secrets instead of creating them. Ignores commands that need a cluster.
KUBECTL = """#!/bin/sh
case $1 in
  create) "$REAL" "$@" --namespace=vestibule --dry-run=client --output=yaml >> made.yaml && echo --- >> made.yaml ;;
  kustomize) exec "$REAL" "$@" ;;
esac
"""
# Renders the chart instead of installing it.
HELM = """#!/bin/sh
case $1 in install) ;; test) exit ;; *) exit 2 ;; esac
shift
exec "$REAL_HELM" template "$@" > rendered.yaml
"""


def steps(page, begins, ends):
    """Lists a page's commands between two headings."""
    text = (PAGES / page).read_text().partition(begins)[2].partition(ends)[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M)


class Made:
    """The Secrets from the page's commands, and a certificate for each that cert-manager would create."""

    def __init__(self, items, folder):
        self.secrets = {item["metadata"]["name"]: {key: base64.b64decode(value).decode() for key, value in item["data"].items()} for item in items}
        self.certificate = certificate(folder)

    def keys(self, name):
        return self.secrets.get(name, self.certificate)


class Followed:
    """Runs the commands in a folder with a copy of k8s, and tests their results."""

    commands = ()

    @classmethod
    def setUpClass(cls):
        real = shutil.which("kubectl")
        if not real:
            raise AssertionError("the page's commands need kubectl; kustomize alone does not make Secrets")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        at = pathlib.Path(folder.name)
        shutil.copytree(matrix.ROOT / "k8s", at / "k8s", ignore=shutil.ignore_patterns("secrets"))
        (at / "bin").mkdir()
        for name, text in (("kubectl", KUBECTL), ("helm", HELM)):
            (at / "bin" / name).write_text(text)
            (at / "bin" / name).chmod(0o755)
        made = certificate(at)
        (at / "fullchain.pem").write_text(made["tls.crt"])
        (at / "privkey.pem").write_text(made["tls.key"])
        env = {**os.environ, "PATH": f"{at / 'bin'}:{os.environ['PATH']}", "REAL": real, "REAL_HELM": chart.program(), "TMPDIR": str(at)}
        cls.done = subprocess.run(["bash", "-eu"], input="\n".join(cls.commands), cwd=at, env=env, capture_output=True, text=True, check=False, timeout=600)
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stderr)
        cls.pair = Pair([item for item in yaml.safe_load_all((at / "rendered.yaml").read_text()) if item])
        cls.made = Made([item for item in yaml.safe_load_all((at / "made.yaml").read_text()) if item], at)

    def test_every_secret_that_is_mounted_is_made_and_no_other(self):
        mounted = {volume["secret"]["secretName"] for _, pod in self.pair.pods() for volume in pod["spec"].get("volumes", []) if "secret" in volume}
        mounted |= {part["secretName"] for item in self.pair.of("Ingress") for part in item["spec"]["tls"]}
        certificates = {item["spec"]["secretName"] for item in self.pair.of("Certificate")}
        self.assertEqual(mounted - certificates, set(self.made.secrets))

    def test_nothing_of_the_example_is_left(self):
        text = yaml.safe_dump(self.pair.items)
        for word in ("example.com", "to-be-set"):
            self.assertNotIn(word, text)
        settings = self.pair.settings(self.pair.workload("edge"))
        self.assertEqual(settings["EDGE_TRUSTED_PROXIES"], "10.244.0.0/16")
        self.assertEqual({part["host"] for item in self.pair.of("Ingress") for part in item["spec"]["rules"]}, {"app.example.org"})

    def test_the_programs_take_it(self):
        for name, program in (("edge", "auth-edge"), ("session-svc", "session-svc")):
            with self.subTest(program=program), tempfile.TemporaryDirectory() as folder:
                workload = self.pair.workload(name)
                mount(self.pair, workload, self.made, folder)
                code, text = check(PROGRAMS / program, variables(self.pair, workload, folder, "10.0.0.7"))
                self.assertEqual(code, 0, text)

    def test_the_operator_reaches_for_the_session_service(self):
        """Exit code 1 means valid settings without a server. Wrong settings exit with 78, a missing one with 2."""
        workload = self.pair.workload("operator")
        with tempfile.TemporaryDirectory() as folder:
            mount(self.pair, workload, self.made, folder)
            env = {"PATH": os.environ["PATH"], **variables(self.pair, workload, folder, "10.0.0.7")}
            command = [PROGRAMS / "session-svc", "sessions", "end", "--subject", "ada", "--yes"]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("no session service answers", done.stderr)


class Kustomize(Followed, unittest.TestCase):
    commands = steps("install.md", "## 1.", "## 4.")


class Chart(Followed, unittest.TestCase):
    commands = [*steps("install.md", "## 1.", "## 2."), *steps("install.md", "## 3.", "## 4."), *steps("helm.md", "## Install", "## Change")]


if __name__ == "__main__":
    unittest.main()
