"""The rules every rendered manifest keeps; each test names one. Needs kubectl (or kustomize) and no cluster."""

import functools
import ipaddress
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest
import urllib.parse

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
OVERLAYS = {path.parent.name: path.parent for path in sorted((ROOT / "k8s/overlays").glob("*/kustomization.yaml"))}
RENDERED = {"base": ROOT / "k8s/base", **OVERLAYS}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")
DRAIN_SECONDS = 25  # the longest the services let work in flight go on
LEASE_SECONDS = 15  # a refresh that is in flight is given up by then
ALLOWED_VOLUMES = {"configMap", "secret", "emptyDir", "projected", "downwardAPI", "persistentVolumeClaim", "csi", "ephemeral"}


def kustomize(name, folder):
    command = ["kubectl", "kustomize"] if shutil.which("kubectl") else ["kustomize", "build"]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{name} does not render: {done.stderr}")
    if done.stderr:
        raise AssertionError(f"{name} renders with warnings: {done.stderr}")
    return list(yaml.safe_load_all(done.stdout))


@functools.cache
def render(name):
    return kustomize(name, RENDERED[name])


def render_with(component):
    """The base with one component, which no overlay needs to have."""
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder).resolve()
        fields = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(ROOT / "k8s/base", at)],
            "components": [os.path.relpath(ROOT / "k8s/components" / component, at)],
        }
        (at / "kustomization.yaml").write_text(yaml.safe_dump(fields))
        return kustomize(component, at)


def of_kind(name, *kinds):
    return [item for item in render(name) if item["kind"] in kinds]


def pods(name):
    for workload in of_kind(name, *WORKLOADS):
        yield workload, workload["spec"]["template"]


def containers(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def matches(selector, labels):
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    return all(labels.get(rule["key"]) in rule["values"] for rule in selector.get("matchExpressions", []))


class Manifests(unittest.TestCase):
    def everywhere(self, names=tuple(RENDERED)):
        for name in names:
            for workload, pod in pods(name):
                with self.subTest(overlay=name, workload=workload["metadata"]["name"]):
                    yield name, workload, pod

    def test_every_overlay_renders_and_is_strictly_valid(self):
        for name in RENDERED:
            for item in render(name):
                with self.subTest(overlay=name, item=f"{item['kind']}/{item['metadata']['name']}"):
                    kubernetes_validate.validate(item, "1.34", strict=True)

    def test_edge_session_service_web_and_redis_are_separate_pods(self):
        for name in RENDERED:
            self.assertEqual({w["metadata"]["name"] for w, _ in pods(name)}, {"edge", "session-svc", "web", "redis"})
            self.assertTrue(all(len(pod["spec"]["containers"]) == 1 for _, pod in pods(name)))

    # pods

    def test_namespaces_enforce_the_restricted_profile_with_a_pinned_version(self):
        for name in OVERLAYS:
            (namespace,) = of_kind(name, "Namespace")
            for mode in ("enforce", "audit", "warn"):
                self.assertEqual(namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}"], "restricted")
                self.assertRegex(namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}-version"], r"^v1\.\d+$")

    def test_pods_run_as_a_numeric_user_of_10000_or_more(self):
        for _, _, pod in self.everywhere():
            context = pod["spec"]["securityContext"]
            self.assertIs(context["runAsNonRoot"], True)
            self.assertGreaterEqual(context["runAsUser"], 10000)
            self.assertGreaterEqual(context["runAsGroup"], 10000)
            for container in containers(pod):
                self.assertNotIn("runAsUser", container["securityContext"])

    def test_containers_gain_no_privilege_and_no_capability(self):
        for _, _, pod in self.everywhere():
            for container in containers(pod):
                self.assertIs(container["securityContext"]["allowPrivilegeEscalation"], False)
                self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
                self.assertNotIn("privileged", container["securityContext"])
                self.assertTrue(all(port["containerPort"] >= 1024 for port in container["ports"]))

    def test_seccomp_is_the_runtime_default_and_nothing_of_the_host_is_shared(self):
        for _, _, pod in self.everywhere():
            self.assertEqual(pod["spec"]["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC", "nodeName"} & set(pod["spec"]))
            for container in containers(pod):
                self.assertNotIn("procMount", container["securityContext"])
                self.assertTrue(all("hostPort" not in port for port in container["ports"]))
            for volume in pod["spec"].get("volumes", []):
                self.assertLessEqual(set(volume) - {"name"}, ALLOWED_VOLUMES)

    def test_probes_and_hooks_name_no_host(self):
        for _, _, pod in self.everywhere():
            for container in containers(pod):
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    for action in ("httpGet", "tcpSocket"):
                        self.assertNotIn("host", container[probe].get(action, {}))
                self.assertNotIn("lifecycle", container)

    def test_the_root_file_system_is_read_only(self):
        for _, _, pod in self.everywhere():
            for container in containers(pod):
                self.assertIs(container["securityContext"]["readOnlyRootFilesystem"], True)

    def test_each_workload_has_a_service_account_without_a_token(self):
        for name, workload, pod in self.everywhere():
            self.assertEqual(pod["spec"]["serviceAccountName"], workload["metadata"]["name"])
            self.assertIs(pod["spec"]["automountServiceAccountToken"], False)
            self.assertIs(pod["spec"]["enableServiceLinks"], False)
            accounts = {item["metadata"]["name"]: item for item in of_kind(name, "ServiceAccount")}
            self.assertIs(accounts[workload["metadata"]["name"]]["automountServiceAccountToken"], False)
        for name in RENDERED:
            self.assertEqual(of_kind(name, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"), [])

    def test_images_of_an_overlay_have_a_tag_or_digest_and_never_latest(self):
        for _, _, pod in self.everywhere(OVERLAYS):
            for container in containers(pod):
                self.assertRegex(container["image"], r"(:[\w.-]+|@sha256:[0-9a-f]{64})$")
                self.assertFalse(container["image"].endswith(":latest"))

    # resources, scheduling, availability

    def test_requests_are_set_and_memory_is_guaranteed(self):
        for _, _, pod in self.everywhere():
            for container in containers(pod):
                requests, limits = container["resources"]["requests"], container["resources"]["limits"]
                self.assertLessEqual({"cpu", "memory", "ephemeral-storage"}, set(requests))
                self.assertLessEqual({"memory", "ephemeral-storage"}, set(limits))
                self.assertEqual(requests["memory"], limits["memory"])
                self.assertNotIn("cpu", limits)

    def test_replicas_are_enough_and_spread_over_zones_and_nodes(self):
        least = {"edge": 2, "session-svc": 3, "web": 2}
        for _, workload, pod in self.everywhere(("base",)):
            if workload["kind"] != "Deployment":
                continue
            self.assertGreaterEqual(workload["spec"]["replicas"], least[workload["metadata"]["name"]])
            keys = {rule["topologyKey"] for rule in pod["spec"]["topologySpreadConstraints"]}
            self.assertEqual(keys, {"topology.kubernetes.io/zone", "kubernetes.io/hostname"})
            for rule in pod["spec"]["topologySpreadConstraints"]:
                self.assertEqual(rule["matchLabelKeys"], ["pod-template-hash"])
                self.assertTrue(matches(rule["labelSelector"], pod["metadata"]["labels"]))

    def test_every_workload_has_a_disruption_budget_that_never_blocks_a_drain(self):
        for name, workload, pod in self.everywhere():
            budgets = [b for b in of_kind(name, "PodDisruptionBudget") if matches(b["spec"]["selector"], pod["metadata"]["labels"])]
            self.assertEqual(len(budgets), 1)
            self.assertEqual(budgets[0]["spec"]["maxUnavailable"], 1)
            self.assertEqual(budgets[0]["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow")

    def test_a_rollout_takes_no_pod_away_before_the_next_is_there(self):
        for _, workload, _ in self.everywhere():
            self.assertGreater(workload["spec"]["minReadySeconds"], 0)
            if workload["kind"] == "Deployment":
                self.assertEqual(workload["spec"]["strategy"]["rollingUpdate"], {"maxUnavailable": 0, "maxSurge": 1})
                self.assertGreater(workload["spec"]["progressDeadlineSeconds"], 0)

    def test_an_autoscaler_owns_the_replicas_it_scales(self):
        scaled = {item["spec"]["scaleTargetRef"]["name"]: item for item in of_kind("prod", "HorizontalPodAutoscaler")}
        self.assertEqual(set(scaled), {"edge", "session-svc"})
        for _, workload, _ in self.everywhere(("prod",)):
            scaler = scaled.get(workload["metadata"]["name"])
            if scaler:
                self.assertNotIn("replicas", workload["spec"])
                self.assertGreaterEqual(scaler["spec"]["minReplicas"], 2)
                self.assertGreaterEqual(scaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 300)

    # probes and shutdown

    def test_every_container_has_the_three_probes_and_liveness_differs_from_readiness(self):
        for _, workload, pod in self.everywhere():
            for container in containers(pod):
                ports = {port["name"] for port in container["ports"]}
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    action = container[probe].get("httpGet") or container[probe].get("tcpSocket")
                    if action:
                        self.assertIn(action["port"], ports)
                if workload["metadata"]["name"] in ("edge", "session-svc"):
                    self.assertEqual(container["livenessProbe"]["httpGet"], {"path": "/livez", "port": "admin"})
                    self.assertEqual(container["readinessProbe"]["httpGet"], {"path": "/readyz", "port": "admin"})
                startup = container["startupProbe"]
                self.assertGreaterEqual(startup["periodSeconds"] * startup["failureThreshold"], 30)

    def test_the_shutdown_budget_fits_the_grace_period(self):
        for name, prefix in (("edge", "EDGE"), ("session-svc", "SESSION")):
            for overlay in RENDERED:
                settings = self.settings(overlay, name)
                pod = next(pod for workload, pod in pods(overlay) if workload["metadata"]["name"] == name)
                delay = int(settings[f"{prefix}_DRAIN_DELAY"])
                readiness = pod["spec"]["containers"][0]["readinessProbe"]
                provider = math.ceil(int(settings.get("OIDC_HTTP_TIMEOUT_MS", "5000")) / 1000)
                self.assertGreater(delay, readiness["periodSeconds"])
                self.assertLess(delay + DRAIN_SECONDS + provider + LEASE_SECONDS, pod["spec"]["terminationGracePeriodSeconds"])

    def settings(self, overlay, name):
        maps = {item["metadata"]["name"]: item["data"] for item in of_kind(overlay, "ConfigMap")}
        pod = next(pod for workload, pod in pods(overlay) if workload["metadata"]["name"] == name)
        return {k: v for source in pod["spec"]["containers"][0]["envFrom"] for k, v in maps[source["configMapRef"]["name"]].items()}

    # network

    def test_everything_is_denied_by_default_in_both_directions(self):
        for name in RENDERED:
            closed = [p["spec"] for p in of_kind(name, "NetworkPolicy") if p["spec"]["podSelector"] == {} and "ingress" not in p["spec"] and "egress" not in p["spec"]]
            self.assertEqual([sorted(spec["policyTypes"]) for spec in closed], [["Egress", "Ingress"]])

    def test_every_allowance_names_its_peers_and_its_ports(self):
        for name in RENDERED:
            for policy in of_kind(name, "NetworkPolicy"):
                for direction, peers in (("ingress", "from"), ("egress", "to")):
                    for rule in policy["spec"].get(direction) or []:
                        with self.subTest(overlay=name, policy=policy["metadata"]["name"]):
                            self.assertTrue(rule[peers])
                            self.assertTrue(rule["ports"])
                            for peer in rule[peers]:
                                self.assertTrue("ipBlock" in peer or "podSelector" in peer, "a namespace alone is too wide")
                                self.assertNotEqual(peer.get("podSelector"), {})

    def reaches(self, name, source, target, port):
        """Whether a pod with the labels `source` may open `port` of a pod with the labels `target`, same namespace."""

        def allowed(pod, other, direction, peers):
            policies = [p["spec"] for p in of_kind(name, "NetworkPolicy") if matches(p["spec"]["podSelector"], pod) and direction.title() in p["spec"]["policyTypes"]]
            rules = [rule for spec in policies for rule in spec.get(direction) or []]
            return not policies or any(
                any("namespaceSelector" not in peer and "podSelector" in peer and matches(peer["podSelector"], other) for peer in rule[peers])
                and any(entry["port"] in port for entry in rule["ports"])
                for rule in rules
            )

        return allowed(source, target, "egress", "to") and allowed(target, source, "ingress", "from")

    def test_only_the_intended_pods_reach_each_other(self):
        ports = {"edge": ("http", 3000), "session-svc": ("grpc", 50051), "web": ("http", 8080), "redis": ("redis", 6379)}
        intended = {("edge", "session-svc"), ("edge", "web"), ("session-svc", "redis")}
        for name in RENDERED:
            labels = {workload["metadata"]["name"]: pod["metadata"]["labels"] for workload, pod in pods(name)}
            reached = {(a, b) for a in labels for b in labels if self.reaches(name, labels[a], labels[b], ports[b])}
            self.assertEqual(reached, intended)

    def test_a_pod_without_the_caller_label_reaches_neither_sessions_nor_redis(self):
        stranger = {"app.kubernetes.io/name": "something-else"}
        for name in RENDERED:
            labels = {workload["metadata"]["name"]: pod["metadata"]["labels"] for workload, pod in pods(name)}
            self.assertFalse(self.reaches(name, stranger, labels["session-svc"], ("grpc", 50051)))
            self.assertFalse(self.reaches(name, stranger, labels["redis"], ("redis", 6379)))

    def test_dns_the_provider_and_the_collector_can_be_reached(self):
        for name in RENDERED:
            policies = {p["metadata"]["name"]: p["spec"] for p in of_kind(name, "NetworkPolicy")}
            dns = {(port["protocol"], port["port"]) for port in policies["allow-dns"]["egress"][0]["ports"]}
            self.assertEqual(dns, {("UDP", 53), ("TCP", 53)})
            self.assertEqual(policies["allow-provider"]["egress"][0]["ports"], [{"protocol": "TCP", "port": 443}])
            self.assertIn("allow-traces", policies)

    def test_redis_speaks_tls_knows_its_users_and_evicts_nothing(self):
        for name in RENDERED:
            (settings,) = [item["data"]["redis.conf"] for item in of_kind(name, "ConfigMap") if item["metadata"]["name"].startswith("redis-settings")]
            for line in ("port 0", "tls-port 6379", "maxmemory-policy noeviction", "appendonly yes", "aclfile /etc/redis/acl/users.acl"):
                self.assertIn(line, settings.splitlines())

    # ways in

    def test_only_the_edge_can_be_reached_from_outside(self):
        for name in RENDERED:
            for ingress in of_kind(name, "Ingress"):
                backends = {path["backend"]["service"]["name"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]}
                self.assertEqual(backends, {"edge"})
                self.assertTrue(ingress["spec"]["tls"])
            for service in of_kind(name, "Service"):
                self.assertIn(service["spec"].get("type", "ClusterIP"), ("ClusterIP",))

    def test_behind_an_ingress_the_trusted_proxies_are_named(self):
        self.assertTrue(self.settings("prod", "edge")["EDGE_TRUSTED_PROXIES"])
        self.assertNotIn("EDGE_TRUSTED_PROXIES", self.settings("base", "edge"))

    def test_the_session_service_has_a_headless_service_and_the_edge_uses_it(self):
        for name in RENDERED:
            services = {item["metadata"]["name"]: item["spec"] for item in of_kind(name, "Service")}
            self.assertEqual(services["session-svc-headless"]["clusterIP"], "None")
            self.assertNotIn("clusterIP", services["session-svc"])
            scheme = "https" if name == "prod" else "http"
            self.assertEqual(self.settings(name, "edge")["EDGE_SESSION_SVC_URL"], f"{scheme}://session-svc-headless:50051")

    def test_in_production_edge_and_session_service_know_each_other_by_certificate(self):
        service, edge = self.settings("prod", "session-svc"), self.settings("prod", "edge")
        self.assertEqual(service["SESSION_INSECURE"], "false")
        for key in ("SESSION_TLS_CERT_FILE", "SESSION_TLS_KEY_FILE", "SESSION_CLIENT_CA_FILE", "SESSION_CALLERS"):
            self.assertTrue(service[key])
        for key in ("EDGE_SESSION_SVC_CA_FILE", "EDGE_SESSION_SVC_CERT_FILE", "EDGE_SESSION_SVC_KEY_FILE"):
            self.assertTrue(edge[key])
        (callers,) = [item["data"]["callers.toml"] for item in of_kind("prod", "ConfigMap") if item["metadata"]["name"].startswith("session-svc-callers-")]
        self.assertIn('identity = "dns:edge.vestibule.svc"', callers)
        for service in of_kind("prod", "Service"):
            if service["metadata"]["name"].startswith("session-svc"):
                self.assertEqual([port["appProtocol"] for port in service["spec"]["ports"]], ["https"])

    def test_services_select_pods_and_ports_that_exist(self):
        for name in RENDERED:
            for service in of_kind(name, "Service"):
                (pod,) = [pod for _, pod in pods(name) if matches({"matchLabels": service["spec"]["selector"]}, pod["metadata"]["labels"])]
                offered = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
                self.assertLessEqual({port["targetPort"] for port in service["spec"]["ports"]}, offered)

    # settings and secrets

    def test_settings_are_immutable_and_named_by_their_content(self):
        for name in RENDERED:
            for item in of_kind(name, "ConfigMap"):
                self.assertIs(item["immutable"], True)
                self.assertRegex(item["metadata"]["name"], r"-[0-9a-z]{10}$")

    def test_no_secret_is_kept_here(self):
        for name in RENDERED:
            self.assertEqual(of_kind(name, "Secret"), [])
        for path in (ROOT / "k8s").rglob("*"):
            if path.is_file():
                for word in re.findall(r"[A-Za-z0-9+/_-]{32,}={0,2}", path.read_text()):
                    random = re.fullmatch(r"[0-9a-f]{32,}", word) or len(set(word)) > 24
                    self.assertFalse(random and not word.count("/") > 1, f"{path.name} holds what looks like a secret: {word}")

    def test_secrets_are_files_for_their_owner_and_never_variables(self):
        for _, _, pod in self.everywhere():
            for container in containers(pod):
                self.assertTrue(all("secretRef" not in source for source in container.get("envFrom", [])))
                self.assertTrue(all("secretKeyRef" not in entry.get("valueFrom", {}) for entry in container.get("env", [])))
            for volume in pod["spec"].get("volumes", []):
                if "secret" in volume:
                    self.assertEqual(volume["secret"]["defaultMode"], 0o400)
                    self.assertIn("fsGroup", pod["spec"]["securityContext"])

    def test_what_is_mounted_can_change_while_the_pod_runs(self):
        for _, _, pod in self.everywhere():
            for container in containers(pod):
                self.assertTrue(all("subPath" not in mount for mount in container.get("volumeMounts", [])))

    def test_files_named_by_settings_lie_in_mounted_folders(self):
        for overlay in RENDERED:
            for name in ("edge", "session-svc"):
                pod = next(pod for workload, pod in pods(overlay) if workload["metadata"]["name"] == name)
                mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
                for key, value in self.settings(overlay, name).items():
                    if value.startswith("/"):
                        self.assertTrue(any(value.startswith(f"{mount}/") for mount in mounts), f"{key}={value}")

    def test_several_providers_are_one_file_that_both_services_read(self):
        items = render_with("providers")
        for item in items:
            kubernetes_validate.validate(item, "1.34", strict=True)
        maps = {item["metadata"]["name"]: item for item in items if item["kind"] == "ConfigMap"}
        mounted = set()
        for name in ("edge", "session-svc"):
            (pod,) = [item["spec"]["template"] for item in items if item["kind"] == "Deployment" and item["metadata"]["name"] == name]
            (container,) = pod["spec"]["containers"]
            sources = [maps[source["configMapRef"]["name"]]["data"] for source in container["envFrom"]]
            settings = {key: value for source in sources for key, value in source.items()}
            self.assertEqual([key for key in settings if key.startswith("OIDC_")], ["OIDC_PROVIDERS"])
            folder, file = os.path.split(settings["OIDC_PROVIDERS"])
            (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == folder]
            (volume,) = [volume for volume in pod["spec"]["volumes"] if volume["name"] == mount["name"]]
            mounted.add(volume["configMap"]["name"])
            self.assertIs(maps[volume["configMap"]["name"]]["immutable"], True)
            folders = {mount["mountPath"] for mount in container["volumeMounts"]}
            tables = tomllib.loads(maps[volume["configMap"]["name"]]["data"][file])["provider"]
            self.assertGreater(len(tables), 1)
            for table in tables:
                self.assertIn(os.path.dirname(table["client_secret_file"]), folders)
        self.assertEqual(len(mounted), 1)

    def test_behind_a_forward_proxy_both_services_go_there_and_nowhere_else(self):
        items = render_with("forward-proxy")
        for item in items:
            kubernetes_validate.validate(item, "1.34", strict=True)
        maps = {item["metadata"]["name"]: item["data"] for item in items if item["kind"] == "ConfigMap"}
        for name in ("edge", "session-svc"):
            (pod,) = [item["spec"]["template"] for item in items if item["kind"] == "Deployment" and item["metadata"]["name"] == name]
            (container,) = pod["spec"]["containers"]
            settings = {}
            for source in container["envFrom"]:
                settings |= maps[source["configMapRef"]["name"]]
            self.assertIn("OIDC_ISSUER_URL", settings)
            port = urllib.parse.urlsplit(settings["HTTPS_PROXY"]).port
            self.assertIn(".svc", settings["NO_PROXY"].split(","))
            policies = [item["spec"] for item in items if item["kind"] == "NetworkPolicy" and matches(item["spec"]["podSelector"], pod["metadata"]["labels"])]
            ways = [rule for policy in policies for rule in policy.get("egress", []) if any("ipBlock" in peer for peer in rule["to"])]
            (way,) = ways
            self.assertEqual([rule["port"] for rule in way["ports"]], [port])
            for peer in way["to"]:
                self.assertEqual(ipaddress.ip_network(peer["ipBlock"]["cidr"]).num_addresses, 1)

    # layout

    def test_no_deprecated_field_of_kustomize_is_used(self):
        for path in (ROOT / "k8s").rglob("kustomization.yaml"):
            fields = yaml.safe_load(path.read_text())
            self.assertFalse({"commonLabels", "patchesStrategicMerge", "patchesJson6902", "vars", "bases"} & set(fields), path)

    def test_the_base_names_no_namespace(self):
        for item in render("base"):
            self.assertNotIn("namespace", item["metadata"])


if __name__ == "__main__":
    unittest.main()
