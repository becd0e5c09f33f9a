"""Tests that the examples for application teams are valid and refer to objects of the components."""

import re
import unittest

import matrix
import pod_security
import schema
import yaml
from pair import Pair

EXAMPLES = sorted((matrix.ROOT / "k8s/components").glob("*/examples/*.yaml"))
OWN = "vestibule"


def targets(item):
    """Collects our Services that a manifest names: (name, port)."""
    space, found = item["metadata"]["namespace"], []

    def walk(value):
        if isinstance(value, dict):
            if {"name", "port"} <= set(value) and value.get("namespace", space) == OWN:
                found.append((value["name"], value["port"]))
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    walk(item["spec"])
    return found


def problems(item, services):
    yield from schema.mistakes(item, schema.VERSIONS[0], experimental=True)
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

    def test_examples_are_valid_and_lead_to_what_is_there(self):
        self.assertGreater(len(EXAMPLES), 3)
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
        }
        for _, item in self.items():
            if item["kind"] in broken:
                with self.subTest(kind=item["kind"]):
                    broken[item["kind"]](item["spec"])
                    self.assertNotEqual(list(problems(item, self.services)), [])

    def test_a_rule_of_a_definition_is_evaluated_on_each_example(self):
        external, targeted = ({"group": "gateway.networking.k8s.io", "kind": kind, "name": "x"} for kind in ("HTTPRoute", "Gateway"))
        broken = [
            ("gateway-api.yaml", "HTTPRoute", "wiki", lambda spec: spec["rules"][0]["filters"][0]["externalAuth"].pop("grpc"), "grpc must be specified"),
            ("gateway-api.yaml", "HTTPRoute", "wiki", lambda spec: spec["rules"][0]["filters"][0].pop("externalAuth"), "externalAuth must be specified"),
            ("envoy-gateway.yaml", "SecurityPolicy", "vestibule", lambda spec: spec.update(targetRef=external), "targetRef"),
            ("envoy-gateway.yaml", "SecurityPolicy", "vestibule", lambda spec: spec["extAuth"].update(http={"path": "/"}), "one of grpc or http"),
            ("istio.yaml", "AuthorizationPolicy", "wiki", lambda spec: spec.update(targetRef=targeted), "targetRef"),
        ]
        for name, kind, named, breaks, word in broken:
            with self.subTest(file=name, word=word):
                (item,) = [item for file, item in self.items() if file.name == name and item["kind"] == kind and item["metadata"]["name"] == named]
                self.assertEqual(list(schema.mistakes(item, schema.VERSIONS[0], experimental=True)), [])
                breaks(item["spec"])
                self.assertIn(word, " ".join(schema.mistakes(item, schema.VERSIONS[0], experimental=True)))

    def test_examples_say_how_the_proxy_rejects_other_spellings_of_an_identity(self):
        settings = {"traefik.io": "aliasHeadersStrategy=delete", "security.istio.io": "headers_with_underscores_action: REJECT_REQUEST"}
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
        shown = [item for block in re.findall(r"```yaml\n(.*?)```", text, re.S) for item in yaml.safe_load_all(block) if "apiVersion" in item]
        self.assertGreater(len(shown), 2)
        for item in shown:
            self.assertEqual(list(schema.mistakes(item, schema.VERSIONS[0])), [])
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
