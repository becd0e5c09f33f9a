"""Tests that the Helm chart renders the same as kustomize, and rejects wrong values."""

import copy
import json
import re
import unittest
import urllib.parse

import chart
import matrix
import pod_security
import rules_network  # noqa: F401 (they add themselves to RULES)
import rules_pods  # noqa: F401
import rules_providers  # noqa: F401
import rules_reach  # noqa: F401
import rules_redis  # noqa: F401
import rules_settings  # noqa: F401
import rules_workloads  # noqa: F401
import yaml
from pair import RULES, Pair

# Values that the chart rejects, with a part of each message.
REFUSED = [
    ({"baseUrl": ""}, "baseUrl is empty. Write the address"),
    ({"baseUrl": "https://app.example.com/shop"}, "/baseUrl"),
    ({"provider": {"issuerUrl": ""}}, "provider.issuerUrl is empty. Write the provider's issuer"),
    ({"edge": {"replica": 3}}, "'replica' not allowed"),
    ({"edge": {"replicas": 0}}, "/edge/replicas"),
    ({"edge": {"replicas": "3"}}, "/edge/replicas"),
    ({"edge": {"resources": {"limits": {"memory": "128"}}}}, "/edge/resources/limits/memory"),
    ({"edge": {"resources": {"limits": {"ephemeral-storage": "64Mi"}}}}, "/edge/resources/limits/ephemeral-storage"),
    ({"redis": {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}}, "/redis/resources/limits/ephemeral-storage"),
    ({"edge": {"settings": {"DRAIN_DELAY": 5}}}, "/edge/settings/DRAIN_DELAY"),
    ({"edge": {"settings": {"edge-drain-delay": "5"}}}, "edge-drain-delay"),
    ({"edges": {}}, "'edges' not allowed"),
    ({"secret": {"clientSecret": "x"}}, "'secret' not allowed"),
    ({"images": {"edge": {"tag": "latest"}}}, "/images/edge/tag"),
    ({"images": {"edge": {"digest": "sha256:abc"}}}, "/images/edge/digest"),
    ({"store": {"kind": "memory"}}, "/store/kind"),
    ({"store": {"kind": "redis-external"}}, "store.addresses is empty. With store.kind redis-external, write"),
    ({"store": {"kind": "redis-cluster"}}, "store.addresses is empty."),
    ({"redis": {"maxmemory": "192"}}, "/redis/maxmemory"),
    ({"ingress": {"enabled": True}}, "trustedProxies is empty. Write the networks"),
    ({"ingress": {"enabled": True}, "trustedProxies": ["10.244.0.0/16"]}, "controller.name is empty. Write the controller"),
    ({"extAuthz": {"enabled": True}}, "controller.name is empty."),
    ({"controller": {"name": "apache"}}, "/controller/name"),
    ({"controller": {"peers": [{"namespaceSelector": {}}]}}, "/controller/peers/0"),
    ({"trustedProxies": ["10.0.0.0/8"]}, "/trustedProxies/0"),
    ({"trustedProxies": ["0.0.0.0/0"]}, "/trustedProxies/0"),
    ({"trustedProxies": "10.244.0.0/16"}, "/trustedProxies"),
    ({"autoscaling": {"edge": {"min": 1, "max": 4}}}, "/autoscaling/edge/min"),
    ({"providers": {"enabled": True}}, "providers.file is empty. Write"),
    ({"forwardProxy": {"enabled": True}}, "forwardProxy.url is empty. Write"),
    ({"forwardProxy": {"enabled": True, "url": "http://user:password@proxy:3128", "peers": chart.NOBODY}}, "/forwardProxy/url"),
    ({"sessionCallers": {"enabled": True}}, "sessionCallers.callers is empty. Write"),
    ({"sessionCallers": {"callers": [{"identity": "orders", "rpcs": ["GetSession"]}]}}, "/sessionCallers/callers/0/identity"),
    ({"sessionCallers": {"callers": [{"identity": "dns:orders", "rpcs": ["*"]}]}}, "/sessionCallers/callers/0/rpcs/0"),
    ({"gatewayApi": {"enabled": True, "backendTls": {"enabled": True}}, "certManager": {"enabled": False}}, "needs certManager.enabled and gatewayApi.enabled. Write true"),
    ({"gatewayApi": {"externalAuth": {"enabled": True, "namespaces": ["wiki"]}}}, "needs extAuthz.enabled. Write true"),
    ({"images": {"edge": {"repository": ""}}}, "images.edge.repository is empty. Write where the cluster pulls this image from"),
    ({"images": {"sessionService": {"repository": ""}}}, "images.sessionService.repository is empty."),
    ({"redis": {"maxmemory": "2gb"}}, "redis.maxmemory 2gb does not fit into a pod of 512Mi. Write 4224Mi or more"),
    ({"redis": {"maxmemory": "193mb"}}, "Write 514Mi or more"),
    ({"edge": {"settings": {"EDGE_DRAIN_DELY": "5"}}}, "edge.settings.EDGE_DRAIN_DELY is a setting that the edge does not have. Write a name from docs/settings.md."),
    ({"edge": {"settings": {"SESSION_ROLL_INTERVAL": "5"}}}, "is a setting that the edge does not have"),
    ({"sessionService": {"settings": {"EDGE_UPSTREAM_TIMEOUT": "5"}}}, "is a setting that the session service does not have"),
    ({"provider": {"settings": {"OIDC_SCOPES": "openid"}}}, "provider.settings.OIDC_SCOPES is a setting that no program has"),
    ({"edge": {"settings": {"DRAIN_DELAY": "5s"}}}, 'edge.settings.DRAIN_DELAY is "5s". Write a whole number of seconds, such as "30".'),
    ({"provider": {"settings": {"OIDC_DPOP": "yes"}}}, 'provider.settings.OIDC_DPOP is "yes". Write "on" or "off".'),
    ({"provider": {"settings": {"OIDC_CLIENT_SECRET": "hunter22"}}}, "provider.settings.OIDC_CLIENT_SECRET is a secret, and values must not contain secrets. Write OIDC_CLIENT_SECRET_FILE"),
    ({"autoscaling": {"edge": {"min": 4, "max": 3}}}, "autoscaling.edge.max is 3. Write at least 4"),
    ({"edge": {"podLabels": {"app.kubernetes.io/name": "other"}}}, "edge.podLabels has app.kubernetes.io/name, but Services and policies select pods by labels with this prefix. Write a label"),
    ({"hosts": ["https://wiki.example.com"]}, "/hosts/0"),
    ({"store": {"kind": "redis-external", "addresses": [{"peers": []}]}}, "/store/addresses/0"),
    ({"pods": {"hostNetwork": True}}, "'hostNetwork' not allowed"),
]


def difference(pair):
    manifests, items = chart.compared()[pair]
    host = urllib.parse.urlsplit(chart.values(pair, [])["baseUrl"]).hostname  # an overlay writes its host into the objects of components
    ours, theirs = chart.by_name(manifests, "kustomize", host), chart.by_name(items, "helm")
    if pair[0] != "dev":  # the overlay dev adds the namespace of the development provider
        theirs = {name: item for name, item in theirs.items() if "/localhost/" not in name}
    return list(chart.differences(ours, theirs))


def settings(items, name):
    return next(item for item in items if item["kind"] == "ConfigMap" and item["metadata"]["name"].startswith(f"{name}-settings-"))


def undescribed(values, schema, table):
    """Yields the keys of `values` that the schema lacks, or that no row of the table covers."""

    def fields(part):
        target = schema["$defs"].get(part.get("$ref", "").rpartition("/")[2], {})
        return {**target.get("properties", {}), **part.get("properties", {})}

    def walk(part, known, path):
        for name, value in part.items():
            where, more = f"{path}{name}", fields(known.get(name, {}))
            if isinstance(value, dict) and more:
                yield from walk(value, more, f"{where}.")
            elif name not in known or not any(f"{where}.".startswith(f"{row}.") for row in table):
                yield where

    return walk(values, fields(schema), "")


class SaysTheSame(unittest.TestCase):
    maxDiff = None

    def test_helm_says_what_kustomize_says_of_every_pair(self):
        for pair in chart.compared():
            with self.subTest(pair=pair):
                self.assertEqual(difference(pair), [])

    def test_every_component_has_its_values_and_is_compared(self):
        self.assertEqual(set(matrix.COMPONENTS), set(chart.VALUES))
        self.assertEqual({name for components in chart.comparable().values() for name in components}, set(matrix.COMPONENTS))
        self.assertEqual({overlay for overlay, component in chart.comparable() if component is None} & set(matrix.OVERLAYS), set(matrix.OVERLAYS))

    def test_every_kind_of_difference_is_noticed(self):
        pair = ("production", None)
        manifests, items = chart.compared()[pair]
        changes = [
            lambda copied: copied.pop(),
            lambda copied: copied.append({"kind": "Service", "metadata": {"name": "other", "labels": {"helm.sh/chart": f"vestibule-{chart.VERSION}"}}}),
            lambda copied: settings(copied, "edge")["data"].update(DRAIN_DELAY="6"),
            lambda copied: next(item for item in copied if item["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0].update(image="other"),
            lambda copied: next(item for item in copied if item["kind"] == "NetworkPolicy")["metadata"].update(namespace="other"),
        ]
        for number, change in enumerate(changes):
            copied = copy.deepcopy(items)
            change(copied)
            with self.subTest(number=number):
                self.assertNotEqual(chart.by_name(manifests, "kustomize"), chart.by_name(copied, "helm"))

    def test_the_chart_keeps_the_rules_of_the_manifests(self):
        for pair, (_, items) in chart.compared().items():
            versions = matrix.versions(chart.comparable()[pair])
            own = [item for item in items if item["metadata"].get("namespace") != "localhost" or pair[0] == "dev"]
            # The rules recognise development by a Namespace object, which a chart does not have.
            fewer = {"replicas_are_enough_and_spread_over_zones_and_nodes"} if pair[0] == "dev" else set()
            fewer.add("an_autoscaler_owns_the_replicas_it_scales")  # helm renders the autoscaler's number
            for name, rule in RULES.items():
                if name in fewer:
                    continue
                with self.subTest(pair=pair, rule=name):
                    self.assertEqual(list(rule(Pair(own, versions))), [])


class Values(unittest.TestCase):
    def test_wrong_values_are_refused_in_words(self):
        for wrong, word in REFUSED:
            with self.subTest(values=wrong):
                with self.assertRaises(AssertionError) as raised:
                    chart.template(chart.merged(chart.LEAST, wrong))
                self.assertIn(word, str(raised.exception))

    def test_the_least_there_is_to_say_is_enough(self):
        self.assertTrue(chart.template(chart.LEAST))

    def test_helm_lint_passes_without_values_and_with_those_of_ci(self):
        for values in ([], *(["--values", str(chart.CHART / "ci" / name)] for name in chart.CI)):
            done = chart.helm("lint", "--strict", str(chart.CHART), *values)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_values_of_ci_render_every_object_of_the_chart(self):
        rendered = set()
        for name in chart.CI:
            done = chart.helm("template", "vestibule", str(chart.CHART), "--values", str(chart.CHART / "ci" / name))
            self.assertEqual(done.returncode, 0, done.stderr)
            rendered |= set(re.findall(r"^# Source: vestibule/templates/([^/\s]+)$", done.stdout, re.M))
        files = {path.name for path in (chart.CHART / "templates").glob("*.yaml")}
        self.assertEqual(files - rendered, {"configmaps-in-use.yaml", "refusals.yaml"})  # one depends on the cluster's objects, the other renders nothing

    def test_the_doctor_runs_in_a_pod_like_those_of_its_program_and_gets_no_requests(self):
        own = {"pods": {"priorityClassName": "high"}, "edge": {"podLabels": {"team": "identity"}}, "openshift": {"enabled": True}}
        for more in ({}, own):
            items = chart.template(chart.merged(chart.LEAST, more), tests=None)
            pods = {item["metadata"]["name"]: item for item in items if item["kind"] == "Pod"}
            self.assertEqual(set(pods), {"edge-doctor", "session-svc-doctor"})
            for name in ("edge", "session-svc"):
                doctor, template = pods[f"{name}-doctor"], Pair(items).workload(name)["spec"]["template"]
                annotations = doctor["metadata"]["annotations"]
                self.assertEqual((annotations["helm.sh/hook"], doctor["spec"]["restartPolicy"]), ("test", "Never"))
                self.assertEqual(doctor["metadata"]["labels"], template["metadata"]["labels"])  # policies select by these labels
                self.assertLessEqual((template["metadata"].get("annotations") or {}).items(), annotations.items())
                (container,), (served,) = doctor["spec"]["containers"], template["spec"]["containers"]
                self.assertEqual(container.pop("args"), ["doctor"])
                self.assertIn("readinessProbe", container)  # it fails, so no Service selects the pod
                self.assertEqual(container, {key: value for key, value in served.items() if key not in ("startupProbe", "livenessProbe")})
                same = {key: value for key, value in doctor["spec"].items() if key not in ("containers", "restartPolicy")}
                self.assertEqual(same, {key: value for key, value in template["spec"].items() if key != "containers"})
                self.assertEqual(list(pod_security.broken(doctor["spec"])), [])

    def test_an_autoscaler_takes_more_metrics_than_cpu(self):
        files = {"type": "Pods", "pods": {"metric": {"name": "process_open_fds"}, "target": {"type": "AverageValue", "averageValue": "450"}}}
        pair = Pair(chart.template(chart.merged(chart.LEAST, {"autoscaling": {"edge": {"min": 2, "max": 12, "metrics": [files]}}})))
        metrics = {item["metadata"]["name"]: item["spec"]["metrics"] for item in pair.of("HorizontalPodAutoscaler")}
        self.assertEqual((len(metrics["session-svc"]), metrics["edge"][1:]), (1, [files]))

    def test_the_readme_has_the_values_and_the_least_installation(self):
        readme = (chart.CHART / "README.md").read_text()
        (least,) = re.findall(r"```yaml\n(.*?)```", readme, re.S)
        self.assertEqual(yaml.safe_load(least), chart.LEAST)
        described = re.findall(r"^\| `(\w+)", readme.partition("## Values")[2], re.M)
        schema = json.loads((chart.CHART / "values.schema.json").read_text())
        self.assertEqual(set(described), set(schema["properties"]) - {"global"})

    def test_every_key_of_the_values_is_in_the_schema_and_the_table(self):
        schema, table = json.loads((chart.CHART / "values.schema.json").read_text()), set(re.findall(r"^\| `([\w.]+)` \|", (chart.CHART / "README.md").read_text(), re.M))
        values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
        self.assertGreater(len(table), 90)
        self.assertEqual(list(undescribed(values, schema, table)), [])
        more = chart.merged(values, {"edge": {"tea": 1}, "images": {"web": {"tea": 1}}, "autoscaling": {"edge": {"tea": 1}}})
        self.assertEqual(list(undescribed(more, schema, table)), ["edge.tea", "images.web.tea", "autoscaling.edge.tea"])
        self.assertEqual(list(undescribed(values, schema, table - {"dns.port"})), ["dns.port"])

    def test_a_changed_setting_is_another_map_and_so_a_rollout(self):
        def names(more):
            items = chart.template(chart.merged(chart.LEAST, more))
            edge = Pair(items).workload("edge")["spec"]["template"]["spec"]
            return json.dumps(edge), settings(items, "edge")["data"], settings(items, "session-svc")["metadata"]["name"]

        before, _, service = names({})
        after, data, same = names({"edge": {"settings": {"DRAIN_DELAY": "7"}}})
        self.assertEqual(data["DRAIN_DELAY"], "7")
        self.assertNotEqual(before, after)
        self.assertEqual(service, same)
        self.assertNotEqual(before, names({"edge": {"routes": '[[route]]\npath = "/*"\nguard = "page"\nupstream = "http://web:8080"\n'}})[0])

    def test_a_value_is_where_it_belongs(self):
        items = chart.template(
            chart.merged(
                chart.LEAST,
                {
                    "baseUrl": "https://shop.example.org",
                    "trustedProxies": ["10.1.0.0/16", "fd00::/64"],
                    "ingress": {"enabled": True, "className": "own", "annotations": {"cert-manager.io/cluster-issuer": "public"}, "tlsSecret": "shop"},
                    "controller": {"name": "traefik"},
                    "images": {"edge": {"repository": "registry.example.org/edge", "digest": "sha256:" + "a" * 64}},
                    "pods": {"imagePullSecrets": [{"name": "registry"}], "nodeSelector": {"pool": "web"}},
                    "redis": {"maxmemory": "1gb", "resources": {"requests": {"memory": "3Gi"}, "limits": {"memory": "3Gi"}}, "storage": "8Gi", "storageClassName": "fast"},
                    "provider": {"peers": [{"ipBlock": {"cidr": "192.0.2.7/32"}}], "port": 8443, "settings": {"OIDC_SCOPE": "openid email"}},
                    "autoscaling": {"edge": {"min": 4, "max": 40}},
                    "dns": {"port": 5353},
                },
            ),
            namespace="shop",
        )
        pair = Pair(items)
        edge = pair.workload("edge")
        (ingress,) = pair.of("Ingress")
        self.assertEqual(pair.settings(edge)["EDGE_TRUSTED_PROXIES"], "10.1.0.0/16,fd00::/64")
        self.assertEqual(pair.settings(edge)["OIDC_SCOPE"], "openid email")
        self.assertEqual((ingress["spec"]["rules"][0]["host"], ingress["spec"]["tls"]), ("shop.example.org", [{"hosts": ["shop.example.org"], "secretName": "shop"}]))
        self.assertEqual(ingress["spec"]["ingressClassName"], "own")
        self.assertEqual(ingress["metadata"]["annotations"]["cert-manager.io/cluster-issuer"], "public")
        self.assertIn("traefik.ingress.kubernetes.io/router.tls", ingress["metadata"]["annotations"])
        self.assertEqual(edge["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example.org/edge@sha256:" + "a" * 64)
        for workload, pod in pair.pods():
            self.assertEqual((pod["spec"]["imagePullSecrets"], pod["spec"]["nodeSelector"]), ([{"name": "registry"}], {"pool": "web"}), workload["metadata"]["name"])
        claim = pair.workload("redis")["spec"]["volumeClaimTemplates"][0]["spec"]
        self.assertEqual((claim["storageClassName"], claim["resources"]["requests"]["storage"]), ("fast", "8Gi"))
        self.assertIn("maxmemory 1gb\n", settings(items, "redis")["data"]["redis.conf"])
        policies = {item["metadata"]["name"]: item["spec"] for item in pair.of("NetworkPolicy")}
        self.assertEqual(policies["allow-provider"]["egress"], [{"to": [{"ipBlock": {"cidr": "192.0.2.7/32"}}], "ports": [{"protocol": "TCP", "port": 8443}]}])
        self.assertEqual({port["port"] for port in policies["allow-dns"]["egress"][0]["ports"]}, {5353})
        self.assertEqual({item["metadata"]["namespace"] for item in items}, {"shop"})
        self.assertEqual(next(item for item in pair.of("HorizontalPodAutoscaler") if item["metadata"]["name"] == "edge")["spec"]["maxReplicas"], 40)

    def test_a_platform_adds_files_labels_annotations_and_affinity_to_each_workload(self):
        own = {
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "podAnnotations": {"sidecar.istio.io/inject": "false", "openshift.io/required-scc": "other"},
            "podLabels": {"team": "identity"},
            "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/edge"}},
        }
        files = {"extraVolumes": [{"name": "authority", "configMap": {"name": "authority"}}], "extraVolumeMounts": [{"name": "authority", "mountPath": "/etc/own", "readOnly": True}]}
        pair = Pair(chart.template(chart.merged(chart.LEAST, {"edge": {**own, **files}, "sessionService": {**own, **files}, "web": own, "openshift": {"enabled": True}})))
        accounts = {item["metadata"]["name"]: item["metadata"].get("annotations") for item in pair.of("ServiceAccount")}
        for name in ("edge", "session-svc", "web"):
            with self.subTest(workload=name):
                pod = pair.workload(name)["spec"]["template"]
                self.assertEqual(pod["spec"]["affinity"], own["affinity"])
                self.assertEqual(pod["metadata"]["annotations"], {"sidecar.istio.io/inject": "false", "openshift.io/required-scc": "restricted-v2"})
                self.assertEqual((pod["metadata"]["labels"]["team"], pod["metadata"]["labels"]["app.kubernetes.io/name"]), ("identity", name))
                self.assertEqual(accounts[name], own["serviceAccount"]["annotations"])
                if name != "web":
                    self.assertIn(files["extraVolumes"][0], pod["spec"]["volumes"])
                    self.assertIn(files["extraVolumeMounts"][0], pod["spec"]["containers"][0]["volumeMounts"])
        self.assertIsNone(accounts["redis"])

    def test_every_host_has_its_place_in_the_ways_in_and_the_settings(self):
        ways = {"ingress": {"enabled": True}, "gatewayApi": {"enabled": True}, "controller": {"name": "traefik"}, "trustedProxies": ["10.244.0.0/16"]}
        pair = Pair(chart.template(chart.merged(chart.LEAST, ways, {"hosts": ["wiki.example.com", "shop.example.org:8443"]})))
        hosts = ["app.example.com", "wiki.example.com", "shop.example.org"]
        (ingress,) = pair.of("Ingress")
        self.assertEqual(([rule["host"] for rule in ingress["spec"]["rules"]], ingress["spec"]["tls"][0]["hosts"]), (hosts, hosts))
        self.assertEqual({rule["http"]["paths"][0]["backend"]["service"]["name"] for rule in ingress["spec"]["rules"]}, {"edge"})
        self.assertEqual([route["spec"]["hostnames"] for route in pair.of("HTTPRoute")], [hosts, hosts])
        self.assertEqual(pair.settings(pair.workload("edge"))["EDGE_HOSTS"], "wiki.example.com,shop.example.org:8443")

    def test_an_issuer_of_the_platform_takes_the_place_of_the_authority(self):
        issuer = {"name": "platform", "kind": "ClusterIssuer", "group": "cert-manager.io"}
        pair = Pair(chart.template(chart.merged(chart.LEAST, {"certManager": {"issuerRef": issuer}})))
        self.assertEqual(list(pair.of("Issuer")), [])
        self.assertEqual([item["spec"]["issuerRef"] for item in pair.of("Certificate")], [issuer] * 5)

    def test_a_store_has_several_addresses_with_several_ports(self):
        sentinels, servers = [{"ipBlock": {"cidr": "10.1.0.0/24"}}], [{"ipBlock": {"cidr": "10.2.0.0/24"}}]
        addresses = [{"peers": sentinels, "ports": [26379]}, {"peers": servers, "ports": [6379, 6380]}]
        pair = Pair(chart.template(chart.merged(chart.LEAST, {"store": {"kind": "redis-external", "addresses": addresses}})))
        policy = next(item for item in pair.of("NetworkPolicy") if item["metadata"]["name"] == "store-clients")
        tcp = lambda *ports: [{"protocol": "TCP", "port": port} for port in ports]
        self.assertEqual(policy["spec"]["egress"], [{"to": sentinels, "ports": tcp(26379)}, {"to": servers, "ports": tcp(6379, 6380)}])

    def test_every_value_is_explained_and_used(self):
        schema = json.loads((chart.CHART / "values.schema.json").read_text())
        used = "".join(path.read_text() for path in (chart.CHART / "templates").rglob("*") if path.is_file())

        def walk(part, path):
            for name, field in part["properties"].items():
                where = [*path, name]
                if "properties" in field:
                    walk(field, where)
                elif where != ["global"]:
                    with self.subTest(value=".".join(where)):
                        self.assertTrue(field.get("description", "").endswith("."))
                        self.assertTrue(where[0] in ("images", "pods") or re.search(rf"\.Values\.{re.escape('.'.join(where))}\b", used), "no template asks for it")

        walk(schema, [])


if __name__ == "__main__":
    unittest.main()
