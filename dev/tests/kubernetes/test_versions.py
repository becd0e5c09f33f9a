"""Tests chart and overlays for each Kubernetes version: fields, network policies, disruption budgets, spread."""

import copy
import json
import unittest

import chart
import cluster
import matrix
import mutations
import mutations_workloads
import rules_network
import rules_pods
import rules_workloads
import schema
from pair import Pair

RULES = (
    rules_pods.strictly_valid_for_every_version,
    rules_network.each_workload_has_a_policy_of_its_own,
    rules_workloads.disruption_budgets_never_block_a_drain,
    rules_workloads.replicas_are_enough_and_spread_over_zones_and_nodes,
)

# A newer field, the first version that has it switched on, and what an older version does.
FIELDS = [
    ("1.30", lambda items: mutations.container(items).update(lifecycle={"preStop": {"sleep": {"seconds": 5}}})),  # off in 1.29, where it is new
    ("1.31", lambda items: mutations_workloads.spread(items).update(matchLabelKeys=["pod-template-hash"])),  # off in 1.29 and 1.30, as its description says
    ("1.35", lambda items: mutations.spec(items).update(hostnameOverride="edge")),  # unknown before 1.34
]


def complaints(items, *versions):
    return [mistake for rule in RULES for mistake in rule(Pair(items, versions))]


class Versions(unittest.TestCase):
    def test_a_field_that_a_version_does_not_have_is_refused(self):
        for first, change in FIELDS:
            items = copy.deepcopy(matrix.rendered()["production", None])
            change(items)
            for version in schema.VERSIONS:
                with self.subTest(first=first, version=version):
                    found = list(rules_pods.strictly_valid_for_every_version(Pair(items, [version])))
                    self.assertEqual(bool(found), version < first, found)

    def test_an_api_that_a_version_does_not_have_is_refused(self):
        gone = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta3", "kind": "FlowSchema", "metadata": {"name": "edge"}}
        self.assertEqual(schema.mistakes(gone, ["1.31"]), [])
        self.assertIn("is unknown in 1.32", schema.mistakes(gone, ["1.32"])[0])

    def test_the_chart_is_valid_and_protects_each_workload_in_each_version(self):
        for version in schema.VERSIONS:
            for name, values in chart.CI.items():
                with self.subTest(version=version, values=name):
                    items = chart.template(values, version=version)
                    self.assertEqual(complaints(items, version), [])

    def test_each_overlay_is_valid_and_protects_each_workload_in_each_version(self):
        for overlay in matrix.OVERLAYS:
            for version in schema.VERSIONS:
                component = "spread-revisions" if version >= matrix.SINCE["spread-revisions"] else None
                with self.subTest(overlay=overlay, version=version):
                    self.assertEqual(complaints(matrix.rendered()[overlay, component], version), [])


class Installs(unittest.TestCase):
    def test_helm_takes_newer_fields_from_the_cluster_and_refuses_older_clusters(self):
        for version, has_field in (("1.28", None), ("1.29", False), ("1.30", False), ("1.31", True), (schema.VERSIONS[-1], True)):
            with self.subTest(version=version), cluster.running(version) as helm:
                done = helm.apply("install", chart.LEAST)
                if has_field is None:
                    self.assertIn("incompatible with Kubernetes v1.28.0", done.stderr)
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                affinity = helm.cluster.of("deployments")["edge"]["spec"]["template"]["spec"]["affinity"]
                self.assertEqual("matchLabelKeys" in json.dumps(affinity), has_field)

    def test_kubectl_reads_every_object_of_chart_and_overlays(self):
        wanted = {**{name: chart.template(values) for name, values in chart.CI.items()}, **{name: matrix.rendered()[name, None] for name in matrix.OVERLAYS}}
        with cluster.running(schema.VERSIONS[0]) as helm:
            for name, items in wanted.items():
                with self.subTest(name=name):
                    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
                    done = helm.kubectl("apply", "--dry-run=client", "--validate=false", "--filename=-", given=given)
                    self.assertEqual((done.returncode, done.stdout.count(" created (dry run)\n")), (0, len(items)), done.stderr)
            self.assertEqual(helm.cluster.objects, {})
            wrong = helm.kubectl("apply", "--dry-run=client", "--validate=false", "--filename=-", given='{"apiVersion": "v1", "kind": "Tea", "metadata": {"name": "edge"}}')
            self.assertNotEqual(wrong.returncode, 0)


if __name__ == "__main__":
    unittest.main()
