"""Tests changes between releases of the chart, with real helm and the API server of cluster.py."""

import re
import unittest

import cluster
import documents
from chart import LEAST, merged

SLOWER = merged(LEAST, {"edge": {"settings": {"DRAIN_DELAY": "7"}}})
SLOWEST = merged(LEAST, {"edge": {"settings": {"DRAIN_DELAY": "9"}}})


class Releases(unittest.TestCase):
    def setUp(self):
        self.helm = self.enterContext(cluster.running())
        self.cluster = self.helm.cluster

    def succeeds(self, done):
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done

    def edge_settings(self):
        """Lists the drain delay in each ConfigMap of the edge."""
        return sorted(item["data"]["DRAIN_DELAY"] for name, item in self.cluster.of("configmaps").items() if name.startswith("edge-settings"))

    def release(self):
        done = self.succeeds(self.helm.run("list", "--namespace", "vestibule", "--no-headers"))
        return done.stdout.split()[2], done.stdout.split()[-3]

    def test_a_rollback_passes_the_first_time_and_back_again(self):
        self.succeeds(self.helm.apply("install", LEAST))
        self.cluster.run_pods()
        self.succeeds(self.helm.apply("upgrade", SLOWER))
        for number, wanted in ((1, "5"), (2, "7"), (1, "5"), (2, "7")):
            self.succeeds(self.helm.run("rollback", "vestibule", str(number), "--namespace", "vestibule"))
            self.assertIn(wanted, self.edge_settings())
            self.cluster.run_pods()
        self.assertEqual(self.release(), ("6", "deployed"))

    def test_a_failed_upgrade_goes_back_by_itself(self):
        with_dashboard = {"monitoring": {"enabled": True}}
        self.succeeds(self.helm.apply("install", merged(LEAST, with_dashboard)))
        before = self.cluster.run_pods()
        self.cluster.refuses = lambda item: "a bad image" if "/edge:bad" in str(item) else None
        done = self.helm.apply("upgrade", merged(SLOWER, with_dashboard, {"images": {"edge": {"repository": "registry.example.org/edge", "tag": "bad"}}}), "--rollback-on-failure", "--timeout", "300s")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has been rolled back", done.stdout + done.stderr)
        self.assertEqual(self.release(), ("3", "deployed"))
        self.assertEqual(self.edge_settings(), ["5"])
        self.assertEqual(self.cluster.of("deployments")["edge"]["spec"], before["deployments"]["edge"]["spec"])

    def test_pods_of_the_release_before_find_their_settings_until_the_next_upgrade(self):
        self.succeeds(self.helm.apply("install", LEAST))
        before = self.cluster.run_pods()
        self.succeeds(self.helm.apply("upgrade", SLOWER))
        self.cluster.run_pods(before)
        self.succeeds(self.helm.apply("upgrade", SLOWEST))
        self.assertEqual(self.edge_settings(), ["5", "7", "9"])
        self.cluster.run_pods()
        self.succeeds(self.helm.apply("upgrade", SLOWEST))
        self.assertEqual(self.edge_settings(), ["9"])

    def test_a_workload_that_is_switched_off_comes_back_by_a_rollback(self):
        self.succeeds(self.helm.apply("install", LEAST))
        self.cluster.run_pods()
        self.succeeds(self.helm.apply("upgrade", merged(LEAST, {"operator": {"enabled": False}})))
        self.assertNotIn("check-store", self.cluster.of("cronjobs"))
        self.succeeds(self.helm.run("rollback", "vestibule", "1", "--namespace", "vestibule"))
        self.assertIn("check-store", self.cluster.of("cronjobs"))

    def test_the_notes_name_every_secret_that_has_to_be_there_and_where_its_keys_are(self):
        way_in = {"ingress": {"enabled": True}, "controller": {"name": "traefik"}, "trustedProxies": ["10.244.0.0/16"]}
        notes = self.succeeds(self.helm.apply("install", merged(LEAST, way_in, {"certManager": {"enabled": False}}))).stdout
        pods = [item["spec"]["template"]["spec"] for kind in ("deployments", "statefulsets") for item in self.cluster.of(kind).values()]
        mounted = {volume["secret"]["secretName"] for pod in pods for volume in pod.get("volumes", []) if "secret" in volume}
        for name in (*mounted, "edge-tls"):
            self.assertRegex(notes, rf"[ ,]{name}\b")
        for page in ("docs/kubernetes/install.md#3-secrets", "docs/kubernetes/tls.md#every-pair"):
            self.assertIn(page, notes)
            path, anchor = page.split("#")
            self.assertEqual(list(documents.dead_links(documents.ROOT / "README.md", f"[keys]({path}#{anchor})")), [])
        self.assertNotIn("edge-tls", self.succeeds(self.helm.apply("upgrade", LEAST)).stdout)

    def test_helm_test_runs_both_doctors_and_fails_with_one_of_them(self):
        self.succeeds(self.helm.apply("install", LEAST))
        run = lambda: self.helm.run("test", "vestibule", "--namespace", "vestibule", "--timeout", "300s")
        done = self.succeeds(run())
        self.assertEqual(sorted(re.findall(r"TEST SUITE: +(\S+)", done.stdout)), ["edge-doctor", "session-svc-doctor"])
        self.assertEqual(self.cluster.of("pods"), {})  # so no remaining pod has the edge's labels
        self.cluster.ends = lambda pod: "Failed" if pod["metadata"]["name"] == "edge-doctor" else "Succeeded"
        self.assertNotEqual(run().returncode, 0)

    def test_a_release_under_another_name_takes_the_place_of_one_that_is_gone(self):
        self.succeeds(self.helm.apply("install", LEAST))
        self.cluster.run_pods()
        self.succeeds(self.helm.apply("upgrade", SLOWER))
        self.succeeds(self.helm.run("uninstall", "vestibule", "--namespace", "vestibule"))
        self.assertEqual(self.cluster.of("configmaps"), {})
        self.succeeds(self.helm.apply("install", LEAST, release="sign-in"))
        self.succeeds(self.helm.run("uninstall", "sign-in", "--namespace", "vestibule"))
        self.assertEqual(self.cluster.of("configmaps"), {})


class Disks(unittest.TestCase):
    def test_disks_of_another_size_or_class_are_refused_before_anything_changes(self):
        helm = self.enterContext(cluster.running())
        self.assertEqual(helm.apply("install", LEAST).returncode, 0)
        before = dict(helm.cluster.of("configmaps"))
        for wrong, words in (({"storage": "8Gi"}, "redis.storage is 8Gi, but the disks have 1Gi."), ({"storageClassName": "fast"}, 'redis.storageClassName is "fast", but the disks have "".')):
            done = helm.apply("upgrade", merged(SLOWER, {"redis": wrong}))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
            self.assertEqual(helm.cluster.of("configmaps"), before)
        self.assertEqual(helm.apply("upgrade", SLOWER).returncode, 0)


class Replicas(unittest.TestCase):
    def setUp(self):
        self.helm = self.enterContext(cluster.running())
        self.deployments = lambda: self.helm.cluster.of("deployments")

    def apply(self, verb, values):
        done = self.helm.apply(verb, values)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: item["spec"]["replicas"] for name, item in self.deployments().items()}

    def autoscaler(self, **numbers):
        """Scales Deployments as an autoscaler does: from now on, it owns their replicas."""
        for name, number in numbers.items():
            self.deployments()[name.replace("_", "-")]["spec"]["replicas"] = number
        owned = {name: item["spec"]["replicas"] for name, item in self.deployments().items()}
        self.helm.cluster.refuses = lambda item: "conflict with kube-controller-manager: .spec.replicas" if item["kind"] == "Deployment" and item["spec"]["replicas"] != owned[item["metadata"]["name"]] else None

    def test_a_first_installation_has_the_least(self):
        found = self.apply("install", merged(LEAST, {"autoscaling": {"enabled": True, "edge": {"min": 4, "max": 8}}}))
        self.assertEqual((found["edge"], found["session-svc"]), (4, 3))

    def test_an_upgrade_keeps_the_number_of_the_autoscaler(self):
        self.apply("install", LEAST)
        self.autoscaler(edge=7, session_svc=5)
        found = self.apply("upgrade", merged(SLOWER, {"autoscaling": {"edge": {"min": 8, "max": 12}}}))
        self.assertEqual((found["edge"], found["session-svc"]), (7, 5))

    def test_switching_it_on_takes_no_pod_away_and_off_says_the_number(self):
        without = merged(LEAST, {"autoscaling": {"enabled": False}, "edge": {"replicas": 6}})
        self.assertEqual(self.apply("install", without)["edge"], 6)
        found = self.apply("upgrade", merged(without, {"autoscaling": {"enabled": True}}))
        self.assertEqual((found["edge"], found["session-svc"]), (6, 3))
        self.assertEqual(self.apply("upgrade", without)["edge"], 6)


if __name__ == "__main__":
    unittest.main()
