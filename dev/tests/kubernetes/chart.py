"""Renders the Helm chart with values that mean the same as a pair of overlay and component."""

import concurrent.futures
import functools
import json
import os
import re
import subprocess
import tempfile
import tomllib

import matrix
import schema
import yaml

CHART = matrix.ROOT / "k8s/chart"
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
PROXIES = "10.244.0.0/16"  # instead of `to-be-set`, which the chart rejects
NOBODY = [{"podSelector": {"matchLabels": {"vestibule.auth/peers": "to-be-set"}}}]

OWN_IMAGES = {"edge": {"repository": "vestibule-edge"}, "sessionService": {"repository": "vestibule-session-svc"}, "web": {"repository": "vestibule-web"}, "devIdp": {"repository": "vestibule-dev-idp"}}
CI = {path.name: yaml.safe_load(path.read_text()) for path in sorted((CHART / "ci").glob("*-values.yaml"))}
LEAST = CI["least-values.yaml"]  # the values that each installation must set

# Disables everything that a value can disable. Images are those of the base.
BASE = {
    "baseUrl": "https://app.example.com",
    "provider": {"issuerUrl": "https://idp.example.com"},
    "autoscaling": {"enabled": False},
    "operator": {"enabled": False},
    "certManager": {"enabled": False},
    "images": {**OWN_IMAGES, "redis": {"repository": "redis", "tag": ""}},
}


def switched(name, **more):
    return {name: {"enabled": True, **more}}


def text(name):
    return (matrix.ROOT / "k8s/components" / name).read_text()


CALLERS = tomllib.loads(text("session-callers/callers.toml"))["caller"][len(tomllib.loads(text("mtls/callers.toml"))["caller"]) :]

# The values with the same meaning as each component. Some follow from other components, and have none.
VALUES = {
    "mtls": {},
    "labels": {},
    "redis": {"store": {"kind": "redis"}},
    "redis-external": {"store": {"kind": "redis-external", "addresses": [{"peers": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [6379]}]}},
    "redis-cluster": {
        "store": {
            "kind": "redis-cluster",
            "addresses": [
                {
                    "peers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "redis"}}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "redis-cluster"}}}],
                    "ports": [6379],
                }
            ],
        }
    },
    "cert-manager": switched("certManager"),
    "cert-manager-redis": {},
    "ingress": switched("ingress"),
    "gateway-api": switched("gatewayApi"),
    "gateway-api/backend-tls": {"gatewayApi": switched("backendTls")},
    "gateway-api/external-auth": {"gatewayApi": switched("externalAuth", namespaces=["wiki"])},
    "forward-auth": switched("forwardAuth"),
    "ext-authz": switched("extAuthz"),
    "autoscaling": switched("autoscaling"),
    "operator": switched("operator"),
    "session-callers": switched("sessionCallers", callers=CALLERS),
    "external-secrets": switched("externalSecrets"),
    "external-secrets/redis": {},
    "external-secrets/operator": {},
    "monitoring": switched("monitoring"),
    "spread-revisions": {},
    "otel": switched("otel"),
    "ipv6": switched("ipv6"),
    "openshift": switched("openshift"),
    "dev-idp": switched("devIdp"),
    "providers": switched("providers", file=text("providers/providers.toml")),
    "forward-proxy": switched("forwardProxy", url="http://proxy.example.com:3128", peers=[{"ipBlock": {"cidr": "10.20.30.40/32"}}]),
    **{name: {"controller": {"name": name.split("/")[1]}} for name in matrix.COMPONENTS if name.startswith("controllers/")},
}
WAYS_IN = {"ingress", "gateway-api", "forward-auth", "ext-authz"}

# The values of an overlay in addition to those of its components. Its images come from its files.
OF_OVERLAY = {
    "dev": {"baseUrl": "http://127.0.0.1:3000", "sessionService": {"replicas": 2}},
    "production": {},
}
IMAGES = {"vestibule-edge": "edge", "vestibule-session-svc": "sessionService", "vestibule-web": "web", "vestibule-dev-idp": "devIdp", "redis": "redis"}


def merged(*maps):
    result = {}
    for one in maps:
        for key, value in one.items():
            result[key] = merged(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
    return result


def values(pair, components):
    """Returns the values with the same meaning as a pair."""
    parts = [BASE, *(VALUES[name] for name in components)]
    if pair[0] in OF_OVERLAY:
        fields = yaml.safe_load((matrix.ROOT / "k8s/overlays" / pair[0] / "kustomization.yaml").read_text())
        images = {IMAGES[image["name"]]: {"repository": image["newName"], "tag": image.get("newTag", ""), "digest": image.get("digest", "")} for image in fields["images"]}
        parts += [OF_OVERLAY[pair[0]], {"images": images}]
    if WAYS_IN & set(components):
        parts.append({"trustedProxies": [PROXIES]})
        if not any(name.startswith("controllers/") for name in components):
            parts.append({"controller": {"peers": NOBODY}})
    return merged(*parts)


# With both components of a set, the chart also includes the third.
TWINS = {
    frozenset({"cert-manager", "redis"}): "cert-manager-redis",
    frozenset({"external-secrets", "redis"}): "external-secrets/redis",
    frozenset({"external-secrets", "operator"}): "external-secrets/operator",
}


def with_twins(components):
    """Adds the components that the chart includes with those of a pair."""
    more = [twin for both, twin in TWINS.items() if both <= set(components) and twin not in components]
    return sorted([*components, *more], key=lambda name: (name == "labels", name == "openshift", name.startswith("controllers/")))


@functools.cache
def program():
    """Returns the path of helm, and unpacks helm if needed."""
    return subprocess.run(["node", str(matrix.ROOT / "dev/chart.mjs"), "--path"], capture_output=True, text=True, check=True, timeout=600).stdout.split()[-1]


def helm(*arguments):
    return subprocess.run([program(), *arguments], capture_output=True, text=True, check=False, timeout=600)


def template(wanted, namespace="vestibule", tests="--skip-tests", version=schema.VERSIONS[0]):
    """Renders the chart for a Kubernetes version, without the pods of `helm test`. Raises helm's errors as AssertionError."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(wanted, file)
        file.flush()
        done = helm("template", "vestibule", str(CHART), "--namespace", namespace, "--values", file.name, "--kube-version", version, *([tests] if tests else []))
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [item for item in yaml.load_all(done.stdout, Loader=matrix.Loader) if item]


def namespace(pair):
    return "vestibule-dev" if pair[0] == "dev" else "vestibule"


def comparable():
    """Returns the pairs that values can express, with their components. The chart allows only one controller."""
    return {pair: with_twins(components) for pair, components in matrix.pairs() if len([name for name in components if name.startswith("controllers/")]) < 2}


@functools.cache
def compared():
    """Returns the objects from kustomize and from helm for each pair."""
    known = comparable()
    program()  # unpacks helm before threads use it
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        charts = pool.map(lambda pair: template(values(pair, known[pair]), namespace(pair), version=matrix.versions(known[pair])[0]), known)
        own = {pair for pair, components in matrix.pairs() if pair in known and components != known[pair]}
        manifests = pool.map(lambda pair: matrix.render_pair(pair, known[pair]) if pair in own else matrix.rendered()[pair], known)
        return {pair: (left, right) for pair, left, right in zip(known, manifests, charts)}


def without_hashes(items):
    names = {item["metadata"]["name"] for item in items if item["kind"] == "ConfigMap" and item.get("immutable")}

    def strip(value):
        if isinstance(value, dict):
            return {key: strip(part) for key, part in value.items()}
        if isinstance(value, list):
            return [strip(part) for part in value]
        return re.sub(r"-[0-9a-z]{10}$", "", value) if value in names else value

    return [strip(item) for item in items]


def normal(value):
    """Sorts lists of named parts, because their order has no meaning."""
    if isinstance(value, dict):
        return {key: normal(part) for key, part in value.items()}
    if isinstance(value, list):
        parts = [normal(part) for part in value]
        return sorted(parts, key=lambda part: part["name"]) if parts and all(isinstance(part, dict) and "name" in part for part in parts) else parts
    return value


def differences(left, right, path=""):
    """Yields each place where two values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differences(left.get(key), right.get(key), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right)):
            yield from differences(one, other, f"{path}[{number}]")
    elif left != right:
        yield f"{path}: {left!s:.300} is not {right!s:.300}"


def by_name(items, of, host="app.example.com"):
    """Maps names to objects, without the differences that docs/decisions/helm-chart.md explains."""
    found = {}
    scaled = {"Deployment": {item["metadata"]["name"]: item["spec"]["minReplicas"] for item in items if item["kind"] == "HorizontalPodAutoscaler"}}
    for item in without_hashes(items):
        metadata = item["metadata"]
        if item["kind"] in ("Secret", "Namespace"):
            continue  # the chart creates neither
        if of == "helm" and metadata["labels"].pop("helm.sh/chart") != f"vestibule-{VERSION}":
            raise AssertionError(f"{metadata['name']}: the label of the chart")
        if of == "helm" and metadata["name"] in scaled.get(item["kind"], {}):
            if item["spec"].pop("replicas") != scaled[item["kind"]][metadata["name"]]:
                raise AssertionError(f"{metadata['name']}: the replicas of a first installation")
        if item["kind"] == "ConfigMap":
            item["data"] = {key: tomllib.loads(text) if key == "callers.toml" else PROXIES if key == "EDGE_TRUSTED_PROXIES" else text for key, text in item["data"].items()}
        whole = json.dumps(normal(item), sort_keys=True)
        whole = whole.replace('"app.kubernetes.io/managed-by": "Helm"', '"app.kubernetes.io/managed-by": "kustomize"')
        whole = whole.replace('"app.example.com"', f'"{host}"')
        whole = re.sub(r'"image": "([a-z-]+)"', rf'"image": "\1:{VERSION}"', whole)
        found[f"{item['kind']}/{metadata.get('namespace')}/{metadata['name']}"] = json.loads(whole)
    return found
