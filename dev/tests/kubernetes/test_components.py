"""Tests all pairs of overlays, stores and components: they render, are valid, and obey our own rules."""

import copy
import tomllib
import unittest
import urllib.parse

import matrix
import rules_network  # noqa: F401 (they add themselves to RULES)
import rules_pods  # noqa: F401
import rules_providers  # noqa: F401
import rules_reach  # noqa: F401
import rules_redis  # noqa: F401
import rules_settings  # noqa: F401
import rules_workloads  # noqa: F401
import schema
from mutations import MUTATIONS
from mutations_workloads import MUTATIONS as MORE_MUTATIONS
from pair import RULES, Pair


def complaints(name, items, versions=schema.VERSIONS):
    try:
        return list(RULES[name](Pair(items, versions)))
    except (KeyError, StopIteration) as error:
        return [f"{name} finds no {error}"]


class Components(unittest.TestCase):
    def test_no_pair_breaks_a_rule(self):
        known = dict(matrix.pairs())
        for pair, items in matrix.rendered().items():
            for name in RULES:
                with self.subTest(pair=pair, rule=name):
                    self.assertEqual(complaints(name, items, matrix.versions(known[pair])), [])

    def test_each_rule_notices_what_breaks_it(self):
        for number, (name, pair, change) in enumerate([*MUTATIONS, *MORE_MUTATIONS]):
            with self.subTest(rule=name, number=number):
                items = copy.deepcopy(matrix.rendered()[pair])
                self.assertEqual(complaints(name, items), [])
                change(items)
                self.assertTrue(list(RULES[name](Pair(items))), "nothing was noticed")

    def test_no_rule_is_without_a_mutation(self):
        self.assertEqual(set(RULES) - {name for name, _, _ in [*MUTATIONS, *MORE_MUTATIONS]}, set())

    def test_every_component_is_in_a_pair_of_each_overlay_or_says_why_not(self):
        seen = set(dict(matrix.pairs()))
        bases = [*matrix.OVERLAYS, *(f"base+{store}" for store in matrix.STORES)]
        for base in bases:
            present = set(dict(matrix.pairs())[base, None])
            missing = {name for name in matrix.COMPONENTS if name not in present and (base, name) not in seen}
            if base.startswith("base+"):
                missing -= set(matrix.STORES)
            self.assertEqual({name for name in missing if (base, name) not in matrix.LEFT_OUT}, set(), base)
        for base, name in matrix.LEFT_OUT:
            self.assertIn(base, bases)
            self.assertIn(name, matrix.COMPONENTS)

    def test_the_callers_of_other_namespaces_are_added_to_the_list_of_mtls(self):
        folder = matrix.ROOT / "k8s/components"
        own, all_of_them = (tomllib.loads((folder / name / "callers.toml").read_text())["caller"] for name in ("mtls", "session-callers"))
        self.assertEqual(all_of_them[: len(own)], own)
        self.assertGreater(len(all_of_them), len(own))

    def test_other_namespaces_find_their_name_in_the_certificate(self):
        items = Pair(matrix.rendered()["production", "session-callers"])
        (certificate,) = [item for item in items.of("Certificate") if item["metadata"]["name"] == "session-svc-tls"]
        space = certificate["metadata"]["namespace"]
        for service in ("session-svc-headless", "session-svc"):
            for name in (service, f"{service}.{space}.svc", f"{service}.{space}.svc.cluster.local"):
                self.assertIn(name, certificate["spec"]["dnsNames"])

    def test_the_hosts_of_an_overlay_are_those_of_its_address(self):
        for overlay in matrix.OVERLAYS:
            pair = Pair(matrix.rendered()[overlay, None])
            host = urllib.parse.urlsplit(pair.settings(pair.workload("edge"))["EDGE_BASE_URL"]).hostname
            hosts = {part["host"] for item in pair.of("Ingress") for part in item["spec"]["rules"]} | {name for item in pair.of("HTTPRoute") for name in item["spec"]["hostnames"]}
            self.assertLessEqual(hosts, {host}, overlay)


if __name__ == "__main__":
    unittest.main()
