"""Tests that the programs accept the settings and files of every pair, and know every setting's name."""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import matrix  # noqa: E402
from mounted import ROOT_FOLDER, Secrets, check, mount, variables  # noqa: E402
from pair import Pair, pod_of  # noqa: E402

PROGRAMS = matrix.ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug"
SERVICES = {"edge": "auth-edge", "session-svc": "session-svc"}
WRONG_SETTINGS = 78
# Variables outside the programs' help: the pod's address, and those that OpenTelemetry and the log's library read.
STANDARD = re.compile(r"POD_IP|OTEL_\w+|RUST_LOG")
POD_NETWORK = "10.244.0.0/16"


def store_of(components):
    return next(name for name in components if name in matrix.STORES)


def documented(service):
    """Collects the names of a program's variables from its --help."""
    text = subprocess.run([PROGRAMS / SERVICES[service], "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\[env:\s+(\w+)", re.sub(r"\s+", " ", text)))


class CheckConfig(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.folder.name)
        cls.secrets = {store: Secrets(cls.at, store) for store in matrix.STORES}
        cls.asked = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def checked(self, pair, workload, store, address, change=lambda values: values):
        """Returns exit code and output of a check. Caches it, because many pairs have the same settings."""
        name = workload["metadata"]["name"]
        values = change(variables(pair, workload, ROOT_FOLDER, address))
        spec = pod_of(workload)["spec"]
        key = json.dumps([name, store, values, spec["volumes"], spec["containers"][0]["volumeMounts"]], sort_keys=True)
        if key not in self.asked:
            with tempfile.TemporaryDirectory() as folder:
                mount(pair, workload, self.secrets[store], folder)
                self.asked[key] = check(PROGRAMS / SERVICES[name], {part: value.replace(ROOT_FOLDER, folder) for part, value in values.items()})
        return self.asked[key]

    def absent(self, pair, workload, store):
        """Returns the settings that name a file which no volume provides."""
        with tempfile.TemporaryDirectory() as folder:
            mount(pair, workload, self.secrets[store], folder)
            return {key for key, value in variables(pair, workload, folder, "10.0.0.7").items() if value.startswith(folder) and not pathlib.Path(value).is_file()}

    def each(self):
        components = dict(matrix.pairs())
        for pair, items in matrix.rendered().items():
            for name in SERVICES:
                yield pair, Pair(items), Pair(items).workload(name), store_of(components[pair])

    @staticmethod
    def named(values):
        return values | {"EDGE_TRUSTED_PROXIES": POD_NETWORK} if values.get("EDGE_TRUSTED_PROXIES") == "to-be-set" else values

    def test_the_programs_take_the_settings_of_every_pair(self):
        for address in ("10.0.0.7", "fd00::5"):
            for name, pair, workload, store in self.each():
                with self.subTest(pair=name, workload=workload["metadata"]["name"], address=address):
                    code, text = self.checked(pair, workload, store, address, self.named)
                    self.assertEqual(code, 0, text)

    def test_the_edge_does_not_start_before_its_proxies_are_named(self):
        waiting = 0
        for name, pair, workload, store in self.each():
            if pair.settings(workload).get("EDGE_TRUSTED_PROXIES") == "to-be-set":
                waiting += 1
                with self.subTest(pair=name):
                    code, text = self.checked(pair, workload, store, "10.0.0.7")
                    self.assertEqual(code, WRONG_SETTINGS, text)
                    self.assertIn("1 setting is wrong", text)
                    self.assertIn("EDGE_TRUSTED_PROXIES", text)
        self.assertGreater(waiting, 0)

    def test_every_file_that_is_named_is_there(self):
        for name, pair, workload, store in self.each():
            with self.subTest(pair=name, workload=workload["metadata"]["name"]):
                self.assertEqual(self.absent(pair, workload, store), set())
        pair = Pair(copy.deepcopy(matrix.rendered()["base+redis", None]))
        workload = pair.workload("session-svc")
        space = workload["metadata"]["namespace"]
        settings = next(source["configMapRef"]["name"] for source in pod_of(workload)["spec"]["containers"][0]["envFrom"] if source["configMapRef"]["name"].startswith("session-svc"))
        pair.config(settings, space)["SESSION_TLS_CERT_FILE"] = f"{ROOT_FOLDER}/session-tls/certificate.pem"
        self.assertEqual(self.absent(pair, workload, "redis"), {"SESSION_TLS_CERT_FILE"})

    def test_every_name_is_one_the_program_knows(self):
        for service in SERVICES:
            known = documented(service)
            self.assertGreater(len(known), 10)
            for name, pair, workload, _ in self.each():
                if workload["metadata"]["name"] == service:
                    with self.subTest(pair=name, workload=service):
                        self.assertEqual({key for key in pair.settings(workload) if key not in known and not STANDARD.fullmatch(key)}, set())

    def test_these_tests_notice_a_wrong_value_a_missing_file_and_a_wrong_address(self):
        pair = Pair(matrix.rendered()["base+redis", None])
        wrong = {
            "edge": [
                {"EDGE_SESSION_SVC_URL": "ftp://session-svc-headless:50051"},
                {"EDGE_SECRET_FILE": f"{ROOT_FOLDER}/edge/secret"},
                {"EDGE_SESSION_SVC_CA_FILE": f"{ROOT_FOLDER}/session-client/ca.pem"},
                {"EDGE_SESSION_SVC_CERT_FILE": f"{ROOT_FOLDER}/session-client/tls.key"},
                {"EDGE_SESSION_SVC_CA_FILE": ""},
                {"EDGE_ADMIN_LISTEN": "fd00::5:9300"},
            ],
            "session-svc": [
                {"SESSION_STORE_FILE": f"{ROOT_FOLDER}/session/address"},
                {"SESSION_CALLERS": f"{ROOT_FOLDER}/session-tls/tls.crt"},
                {"SESSION_CLIENT_CA_FILE": ""},
                {"SESSION_TLS_CERT_FILE": f"{ROOT_FOLDER}/session-tls/certificate.pem"},
                {"SESSION_TLS_KEY_FILE": f"{ROOT_FOLDER}/session-tls/tls.crt"},
            ],
        }
        for name, changes in wrong.items():
            for change in changes:
                with self.subTest(change=change):
                    code, text = self.checked(pair, pair.workload(name), "redis", "10.0.0.7", lambda values, change=change: values | change)
                    self.assertEqual(code, WRONG_SETTINGS, text)


if __name__ == "__main__":
    unittest.main()
