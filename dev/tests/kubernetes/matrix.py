"""Renders every overlay with each component it lacks, and the base with each store and what meets that store."""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import schema
import yaml

try:
    Loader = yaml.CSafeLoader
except AttributeError:  # PyYAML without libyaml: the same result, but slower
    Loader = yaml.SafeLoader

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMPONENTS = sorted(str(path.parent.relative_to(ROOT / "k8s/components")) for path in (ROOT / "k8s/components").rglob("kustomization.yaml") if "kind: Component" in path.read_text())
STORES = [name for name in COMPONENTS if re.fullmatch(r"redis(-\w+)?", name)]
OVERLAYS = sorted(path.parent.name for path in (ROOT / "k8s/overlays").glob("*/kustomization.yaml"))

# The components that a component needs, in the order in which an overlay lists them.
NEEDS = {
    "cert-manager": ["mtls"],
    "cert-manager-redis": ["mtls", "cert-manager", "redis"],
    "operator": ["mtls"],
    "session-callers": ["mtls", "cert-manager"],
    "gateway-api/backend-tls": ["mtls", "cert-manager", "gateway-api"],
    "gateway-api/external-auth": ["ext-authz"],
    "external-secrets/redis": ["redis", "external-secrets"],
    "external-secrets/operator": ["mtls", "operator", "external-secrets"],
    **{name: ["ingress", "gateway-api", "forward-auth", "ext-authz"] for name in COMPONENTS if name.startswith("controllers/")},
}

# The first Kubernetes version that has a component's fields switched on.
SINCE = {"spread-revisions": "1.31"}

# Components that have nothing to do with the store.
FOR_ANY_STORE = {"dev-idp", "ext-authz", "forward-auth", "forward-proxy", "ingress", "otel", "providers", "session-callers", *(name for name in COMPONENTS if name.startswith(("controllers/", "gateway-api")))}

# Pairs that contradict themselves or show nothing new, with the reason.
MAKES_ITS_SECRETS = "the overlay creates these Secrets itself"
LEFT_OUT = {
    ("dev", "autoscaling"): "the overlay says how many pods there are",
    **{("dev", name): MAKES_ITS_SECRETS for name in ("cert-manager", "cert-manager-redis", "gateway-api/backend-tls", "session-callers", *(name for name in COMPONENTS if name.startswith("external-secrets")))},
    **{(f"base+{store}", name): "its certificates, or passwords, are those of the component redis" for store in STORES if store != "redis" for name in ("cert-manager-redis", "external-secrets/redis")},
    **{(f"base+{store}", name): "one store is enough for it" for store in STORES[1:] for name in FOR_ANY_STORE},
}


def kustomize(folder):
    command = ["kubectl", "kustomize"] if shutil.which("kubectl") else ["kustomize", "build"]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{folder}: {done.stderr or 'does not render'}")
    return [item for item in yaml.load_all(done.stdout, Loader=Loader) if item]


def with_needs(name):
    """Lists the components that a component needs, and then the component itself."""
    names = [*(part for need in NEEDS.get(name, []) for part in with_needs(need)), name]
    return list(dict.fromkeys(names))


def product(overlay):
    """Returns the folder that composes the product: the overlay, or a part of it."""
    folder = ROOT / "k8s/overlays" / overlay
    for file in sorted(folder.rglob("kustomization.yaml"), key=lambda path: len(path.parts)):
        if any("mtls" in part for part in yaml.safe_load(file.read_text()).get("components", [])):
            return file.parent.relative_to(ROOT)
    raise AssertionError(f"{overlay} takes no mtls")


def taken(overlay):
    """Lists an overlay's components."""
    fields = yaml.safe_load((ROOT / product(overlay) / "kustomization.yaml").read_text())
    return [part.split("components/", 1)[1] for part in fields["components"]]


def versions(components):
    """Lists the Kubernetes versions for a list of components."""
    first = max((schema.VERSIONS.index(SINCE[name]) for name in components if name in SINCE), default=0)
    return schema.VERSIONS[first:]


def joined(present, name):
    """Adds a component to an overlay's: instead of its store, and before those that patch all others."""
    if name in STORES:
        present = [name if part in STORES else part for part in present if part != "cert-manager-redis"]
    together = list(dict.fromkeys([*present, *with_needs(name)]))
    return sorted(together, key=lambda part: (part == "labels", part == "openshift", part.startswith("controllers/")))


def stand_in_secrets(tree):
    """Creates the files for an overlay's secretGenerator, which the repository does not contain."""
    for file in tree.rglob("kustomization.yaml"):
        for generator in yaml.safe_load(file.read_text()).get("secretGenerator", []):
            for name in generator["files"]:
                path = file.parent / name.split("=")[-1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("stands in for a secret\n")


def pairs():
    """Yields the name of each pair and its components."""
    for overlay in OVERLAYS:
        present = taken(overlay)
        yield (overlay, None), present
        for name in COMPONENTS:
            if name not in present and (overlay, name) not in LEFT_OUT:
                yield (overlay, name), joined(present, name)
    for store in STORES:
        present = ["mtls", store, "labels"]
        yield (f"base+{store}", None), present
        for name in COMPONENTS:
            if name not in present and name not in STORES and (f"base+{store}", name) not in LEFT_OUT:
                yield (f"base+{store}", name), joined(present, name)


def lay_out(tree, pair, components):
    """Writes a pair into a copy of the repository, as a user would, and returns the folder to render."""
    if pair[0] in OVERLAYS:
        file = tree / product(pair[0]) / "kustomization.yaml"
        fields = yaml.safe_load(file.read_text())
        up = os.path.relpath(tree / "k8s/components", file.parent)
        fields["components"] = [f"{up}/{name}" for name in components]
        if "providers" in components:  # replaces the overlay's own provider
            fields["configMapGenerator"] = [part for part in fields["configMapGenerator"] if part["name"] != "provider-settings"]
        file.write_text(yaml.safe_dump(fields, sort_keys=False))
        return tree / "k8s/overlays" / pair[0]
    folder = tree / "k8s/pair"
    folder.mkdir()
    fields = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "vestibule",
        "resources": ["../base"],
        "components": [f"../components/{name}" for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))
    return folder


def render_pair(pair, components):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder).resolve()
        shutil.copytree(ROOT / "k8s", tree / "k8s", ignore=shutil.ignore_patterns("secrets"))
        stand_in_secrets(tree)
        return kustomize(lay_out(tree, pair, components))


def state():
    """Hashes all inputs of the rendering."""
    seen = hashlib.sha256()
    for path in [pathlib.Path(__file__), *sorted((ROOT / "k8s").rglob("*"))]:
        if path.is_file() and "secrets" not in path.parts:
            seen.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return seen.hexdigest()


@functools.cache
def rendered():
    """Maps (overlay or base+store, component) to rendered manifests. Caches them until an input changes."""
    known = dict(pairs())
    kept = ROOT / ".cache/kubernetes" / f"{state()}.json"
    if not kept.exists():
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            results = list(pool.map(lambda pair: render_pair(pair, known[pair]), known))
        shutil.rmtree(kept.parent, ignore_errors=True)
        kept.parent.mkdir(parents=True)
        kept.with_suffix(".part").write_text(json.dumps(results))
        kept.with_suffix(".part").rename(kept)
    return dict(zip(known, json.loads(kept.read_text())))
