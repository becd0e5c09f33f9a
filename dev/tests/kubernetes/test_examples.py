"""Tests that the manifests for application teams, in examples and documents, are valid and name existing objects."""

import re
import unittest

import documents
import matrix
import pod_security
import schema
import yaml
from pair import Pair

EXAMPLES = sorted((matrix.ROOT / "k8s/components").glob("*/examples/*.yaml"))
GATEWAYS = [documents.OF_KUBERNETES / f"{name}.md" for name in ("cilium", "envoy-gateway", "external-auth", "ingress-nginx", "istio", "traefik")]
NEWEST = schema.VERSIONS[-1]
OWN = "vestibule"


def shown(page):
    """Yields the manifests of a page."""
    for block in documents.blocks(page.read_text(), "yaml"):
        yield from (item for item in yaml.safe_load_all(block) if "apiVersion" in item)


def targets(item):
    """Collects our Services that a manifest names: (name, port)."""
    space, found = item["metadata"].get("namespace"), []

    def walk(value):
        if isinstance(value, dict):
            if {"name", "port"} <= set(value) and value.get("namespace", space) == OWN:
                port = value["port"]
                found.append((value["name"], port if not isinstance(port, dict) else next(iter(port.values()))))
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    walk(item["spec"])
    return found


def problems(item, services):
    yield from schema.mistakes(item, (NEWEST,), experimental=True)
    for name, port in targets(item):
        if port not in services.get(name, ()):
            yield f"leads to {name}:{port}"
    if item["kind"] == "Deployment":
        yield from pod_security.broken(item["spec"]["template"]["spec"])
    if item["kind"] == "SecurityPolicy" and item["spec"]["extAuth"].get("failOpen") is not False:
        yield "lets all requests pass while the edge is unreachable"
    if item["kind"] == "Middleware" and item["spec"].get("forwardAuth", {}).get("trustForwardHeader", False):
        yield "believes clients"


class Examples(unittest.TestCase):
    def setUp(self):
        self.services = {item["metadata"]["name"]: {value for port in item["spec"]["ports"] for value in (port["name"], port["port"])} for item in Pair(matrix.rendered()["base+redis", "ext-authz"]).of("Service")}

    def items(self):
        for file in EXAMPLES:
            for item in yaml.safe_load_all(file.read_text()):
                yield file, item
        for page in GATEWAYS:
            for item in shown(page):
                yield page, item

    def test_examples_are_valid_and_lead_to_what_is_there(self):
        for page in GATEWAYS:
            self.assertGreater(len(list(shown(page))), 1, page.name)
        for file, item in self.items():
            with self.subTest(file=file.name, item=f"{item['kind']}/{item['metadata']['name']}"):
                self.assertEqual(list(problems(item, self.services)), [])

    def test_a_broken_example_is_noticed(self):
        broken = {
            "HTTPRoute": lambda spec: spec["rules"][0]["backendRefs"][0].update(namespace=OWN, name="session-svc"),
            "SecurityPolicy": lambda spec: spec["extAuth"].update(failOpen=True),
            "IngressRoute": lambda spec: spec["routes"][0].update(matches="Host(`x`)"),
            "AuthorizationPolicy": lambda spec: spec.update(provider="vestibule"),
            "Certificate": lambda spec: spec.update(names=["x"]),
            "Deployment": lambda spec: spec["template"]["spec"].update(hostNetwork=True),
            "Ingress": lambda spec: spec["rules"][0].update(hosts=["x"]),
            "CiliumNetworkPolicy": lambda spec: spec["ingress"][0].update(fromEntities=["gateway"]),
            "ValidatingAdmissionPolicy": lambda spec: spec["validations"][0].pop("expression"),
        }
        for _, item in self.items():
            if item["kind"] in broken:
                with self.subTest(kind=item["kind"]):
                    broken[item["kind"]](item["spec"])
                    self.assertNotEqual(list(problems(item, self.services)), [])

    def test_a_rule_of_a_definition_is_evaluated_on_each_example(self):
        external, targeted = ({"group": "gateway.networking.k8s.io", "kind": kind, "name": "x"} for kind in ("HTTPRoute", "Gateway"))
        broken = [
            ("external-auth.md", "HTTPRoute", "wiki", lambda spec: spec["rules"][0]["filters"][0]["externalAuth"].pop("grpc"), "grpc must be specified"),
            ("external-auth.md", "HTTPRoute", "wiki", lambda spec: spec["rules"][0]["filters"][0].pop("externalAuth"), "externalAuth must be specified"),
            ("envoy-gateway.md", "SecurityPolicy", "vestibule", lambda spec: spec.update(targetRef=external), "targetRef"),
            ("envoy-gateway.md", "SecurityPolicy", "vestibule", lambda spec: spec["extAuth"].update(http={"path": "/"}), "one of grpc or http"),
            ("istio.md", "AuthorizationPolicy", "wiki", lambda spec: spec.update(targetRef=targeted), "targetRef"),
        ]
        for name, kind, named, breaks, word in broken:
            with self.subTest(file=name, word=word):
                item = next(item for file, item in self.items() if file.name == name and item["kind"] == kind and item["metadata"]["name"] == named)
                self.assertEqual(list(schema.mistakes(item, (NEWEST,), experimental=True)), [])
                breaks(item["spec"])
                self.assertIn(word, " ".join(schema.mistakes(item, (NEWEST,), experimental=True)))

    def test_the_route_of_the_sign_in_is_the_same_on_every_page(self):
        routes = [item for _, item in self.items() if item["kind"] == "HTTPRoute" and item["metadata"]["name"] == "wiki-sign-in"]
        self.assertEqual(len(routes), 3)
        for route in routes:
            self.assertEqual(route, routes[0])

    def test_each_gateway_of_another_namespace_has_a_grant(self):
        (grant,) = yaml.safe_load_all((matrix.ROOT / "k8s/components/gateway-api/external-auth/grant.yaml").read_text())
        granted = {(source["kind"], source["namespace"]) for source in grant["spec"]["from"]}
        asking = {(item["kind"], item["metadata"]["namespace"]) for _, item in self.items() if item["metadata"].get("namespace") != OWN and "edge-ext-authz" in str(item["spec"])}
        self.assertEqual(asking, granted)
        self.assertEqual([target["name"] for target in grant["spec"]["to"]], ["edge-ext-authz"])

    def test_examples_say_how_the_proxy_rejects_other_spellings_of_an_identity(self):
        settings = {"traefik.io": "aliasHeadersStrategy=delete", "security.istio.io": "headers_with_underscores_action: REJECT_REQUEST", "cilium.io": "X_Auth_Subject"}
        seen = set()
        for file, item in self.items():
            group = item["apiVersion"].split("/")[0]
            if group in settings:
                seen.add(group)
                self.assertIn(settings[group], file.read_text(), file.name)
        self.assertEqual(seen, set(settings))
        for recipe, setting in (("traefik.yml", "aliasHeadersStrategy: delete"), ("envoy.yaml", "headers_with_underscores_action: REJECT_REQUEST")):
            self.assertIn(setting, (matrix.ROOT / "docs/integrations" / recipe).read_text())

    def test_what_the_document_shows_is_valid_and_every_controller_is_in_it(self):
        text = (matrix.ROOT / "docs/kubernetes/protecting-applications.md").read_text()
        items = list(shown(documents.OF_KUBERNETES / "protecting-applications.md"))
        self.assertGreater(len(items), 2)
        for item in items:
            self.assertEqual(list(schema.mistakes(item)), [])
        for name in matrix.COMPONENTS:
            if name.startswith("controllers/"):
                self.assertIn(f"| `{name.split('/')[1]}`", text)
        for path in re.findall(r"\]\((\.\./[^)#]+)", text):
            self.assertTrue((matrix.ROOT / "docs/kubernetes" / path).exists(), path)

    def test_the_caller_of_the_example_is_on_the_list_and_asks_by_a_name_of_the_certificate(self):
        (example,) = [file for file in EXAMPLES if file.name == "orders.yaml"]
        certificate, deployment = yaml.safe_load_all(example.read_text())
        text = (matrix.ROOT / "k8s/components/session-callers/callers.toml").read_text()
        for name in certificate["spec"]["dnsNames"]:
            self.assertIn(f'identity = "dns:{name}"', text)
        address = deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]
        self.assertIn(address.split("//")[1].split(":")[0], (matrix.ROOT / "k8s/components/session-callers/kustomization.yaml").read_text())


if __name__ == "__main__":
    unittest.main()
