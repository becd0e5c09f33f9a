"""Tests the files themselves, in addition to their output."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest

import matrix
import yaml
from pair import Pair

ROOT = matrix.ROOT
K8S = ROOT / "k8s"
SECRETS = K8S / "overlays/dev/secrets"  # created on developers' machines; git ignores it
DEPRECATED = {"commonLabels", "patchesStrategicMerge", "patchesJson6902", "vars", "bases"}


def files(pattern="*"):
    return [path for path in K8S.rglob(pattern) if path.is_file() and SECRETS not in path.parents]


def looks_like_a_secret(word):
    random = re.fullmatch(r"[0-9a-f]{32,}", word) or len(set(word)) > 24
    return bool(random) and word.count("/") <= 1


def fields_of(path):
    return yaml.safe_load(path.read_text())


class Repository(unittest.TestCase):
    def test_no_secret_is_kept_here(self):
        for path in files():
            for word in re.findall(r"[A-Za-z0-9+/_-]{32,}={0,2}", path.read_text()):
                self.assertFalse(looks_like_a_secret(word), f"{path.name} holds what looks like a secret: {word}")
        self.assertTrue(looks_like_a_secret("0123456789abcdef0123456789abcdef"))
        self.assertTrue(looks_like_a_secret("q8ZtP3vNf0wYc7RbXk2LhJ5mDg9sTa4e"))

    def test_the_secrets_of_the_dev_overlay_are_ignored_by_git_and_by_builds_of_images(self):
        ignored = subprocess.run(["git", "check-ignore", "-q", str(SECRETS / "edge/edge-secret")], cwd=ROOT, check=False)
        self.assertEqual(ignored.returncode, 0)
        (list_for_builds,) = [path for path in (ROOT / ".dockerignore", ROOT / ".containerignore") if path.exists()]
        self.assertIn("k8s/overlays/dev/secrets", list_for_builds.read_text().splitlines())

    def test_no_deprecated_field_of_kustomize_is_used(self):
        for path in files("kustomization.yaml"):
            self.assertFalse(DEPRECATED & set(fields_of(path)), path)

    def test_secrets_keep_their_names_and_settings_get_new_ones(self):
        for path in files("kustomization.yaml"):
            fields = fields_of(path)
            if fields.get("generatorOptions", {}).get("disableNameSuffixHash"):
                self.assertNotIn("configMapGenerator", fields, path)

    def test_the_base_names_no_namespace_no_store_and_no_plaintext(self):
        items = matrix.kustomize(K8S / "base")
        self.assertTrue(all("namespace" not in item["metadata"] for item in items))
        self.assertEqual({workload["metadata"]["name"] for workload, _ in Pair(items).pods()}, {"edge", "session-svc", "web"})
        self.assertNotIn("SESSION_INSECURE", json.dumps(items))

    def test_what_production_says_of_trusted_proxies_counts(self):
        # Kustomize applies components after an overlay's own settings, so components would override them.
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder).resolve() / "k8s"
            shutil.copytree(K8S, tree, ignore=shutil.ignore_patterns("secrets", "chart"))
            overlay = tree / "overlays/production"
            fields = overlay / "kustomization.yaml"
            text = fields.read_text()
            self.assertEqual(text.count("value: to-be-set"), 1)
            fields.write_text(text.replace("value: to-be-set", "value: 10.244.0.0/16"))
            told = [item["data"]["EDGE_TRUSTED_PROXIES"] for item in matrix.kustomize(overlay) if "EDGE_TRUSTED_PROXIES" in (item.get("data") or {})]
        self.assertEqual(told, ["10.244.0.0/16"])

    def test_labels_tell_the_version_of_the_programs(self):
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        told = {pair["app.kubernetes.io/version"] for part in fields_of(K8S / "components/labels/kustomization.yaml")["labels"] for pair in [part["pairs"]] if "app.kubernetes.io/version" in pair}
        self.assertEqual(told, {version})
        tags = {image["newTag"] for image in fields_of(K8S / "overlays/production/kustomization.yaml")["images"] if image["name"].startswith("vestibule-")}
        self.assertEqual(tags, {version})

    def test_throw_away_certificates_have_the_names_that_cert_manager_gives(self):
        script = "import { CERTIFICATES } from './dev/lib/cluster-secrets.mjs'; process.stdout.write(JSON.stringify(CERTIFICATES));"
        made = json.loads(subprocess.run(["node", "--input-type=module", "--eval", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        usages = {"serverAuth": "server auth", "clientAuth": "client auth"}
        issued = {}
        for item in Pair(matrix.rendered()["production", None]).of("Certificate"):
            if not item["spec"].get("isCA"):
                issued[item["spec"]["secretName"]] = (item["spec"]["dnsNames"], set(item["spec"]["usages"]) - {"digital signature"})
        self.assertEqual({name: (value["names"], {usages[one] for one in value["usages"]}) for name, value in made.items()}, issued)

    def test_scripts_are_posix_shell(self):
        for path in files("*.sh"):
            self.assertEqual(subprocess.run(["sh", "-n", str(path)], check=False).returncode, 0, path)


if __name__ == "__main__":
    unittest.main()
