"""Extracts schemas of custom resources into this folder: python extract.py DEFINITION.yaml…

Omits descriptions, and rules that compare with an earlier version. README.md lists the sources of the definitions.
"""

import json
import pathlib
import sys

import yaml

FOLDER = pathlib.Path(__file__).parent
KEPT = ("type", "properties", "required", "items", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties", "anyOf", "oneOf", "allOf", "not", "default")
RULES = "x-kubernetes-validations"
# The kinds in manifests and examples, with their versions.
WANTED = {
    "AuthorizationPolicy": "security.istio.io/v1",
    "BackendTLSPolicy": "gateway.networking.k8s.io/v1",
    "Certificate": "cert-manager.io/v1",
    "EnvoyFilter": "networking.istio.io/v1alpha3",
    "ExternalSecret": "external-secrets.io/v1",
    "Gateway": "gateway.networking.k8s.io/v1",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "IngressRoute": "traefik.io/v1alpha1",
    "Issuer": "cert-manager.io/v1",
    "Middleware": "traefik.io/v1alpha1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
    "ReferenceGrant": "gateway.networking.k8s.io/v1beta1",
    "SecurityPolicy": "gateway.envoyproxy.io/v1alpha1",
}
# Large fields that our manifests do not use: their contents are not validated.
UNREAD = {"Issuer": ("acme", "vault", "venafi"), "SecurityPolicy": ("apiKeyAuth", "authorization", "basicAuth", "jwt", "oidc")}


def compact(schema, leave):
    """Removes descriptions from a schema, and forbids unknown fields in objects."""
    kept = {key: schema[key] for key in KEPT if key in schema}
    rules = [{key: rule[key] for key in ("rule", "message") if key in rule} for rule in schema.get(RULES, []) if "oldSelf" not in rule["rule"]]
    if rules:
        kept[RULES] = rules
    if "properties" in kept:
        kept["properties"] = {name: {"type": "object"} if name in leave else compact(part, leave) for name, part in kept["properties"].items()}
        kept["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    elif isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = compact(schema["additionalProperties"], leave)
    if "items" in kept:
        kept["items"] = compact(kept["items"], leave)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in kept:
            kept[key] = [compact_alternative(part) for part in kept[key]]
    if schema.get("x-kubernetes-int-or-string"):
        kept.pop("type", None)
        kept["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return kept


def compact_alternative(schema):
    """Compacts an alternative, which allows unknown fields because its neighbours define more."""
    kept = compact(schema, ())
    kept.pop("additionalProperties", None)
    return kept


def definitions(paths):
    for path in paths:
        for definition in yaml.safe_load_all(pathlib.Path(path).read_text()):
            if definition and definition.get("kind") == "CustomResourceDefinition":
                yield definition


def main(paths):
    for definition in definitions(paths):
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        channel = definition["metadata"].get("annotations", {}).get("gateway.networking.k8s.io/channel")
        for version in definition["spec"]["versions"]:
            if WANTED.get(kind) != f"{group}/{version['name']}":
                continue
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"].pop("status", None)
            schema = compact(schema, UNREAD.get(kind, ()))
            schema["properties"] |= {"apiVersion": {"const": WANTED[kind]}, "kind": {"const": kind}, "metadata": {"type": "object"}}
            suffix = ".experimental" if channel == "experimental" else ""
            (FOLDER / f"{kind}{suffix}.json").write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
