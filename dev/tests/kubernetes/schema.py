"""Validates a manifest strictly: by Kubernetes' schemas in four versions, or by schemas/ with their CEL rules."""

import functools
import json
import pathlib
import re

import cel_rules
import jsonschema
import kubernetes_validate
from referencing import Registry, Resource

OWN = pathlib.Path(__file__).parent / "schemas"
KUBERNETES = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
VERSIONS = ("1.34", "1.35", "1.36", "1.37")


def read(path):
    return json.loads(path.read_text())


@functools.cache
def validator(kind, api, version, experimental):
    of_another_project = OWN / f"{kind}{'.experimental' if experimental else ''}.json"
    if of_another_project.exists() and read(of_another_project)["properties"]["apiVersion"]["const"] == api:
        return jsonschema.Draft202012Validator(read(of_another_project))
    name = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    file = KUBERNETES / f"v{version}.0-local-strict/{kind.lower()}-{name}.json"
    if not file.exists():
        return None
    registry = Resource.from_contents(read(file)) @ (Resource.from_contents(read(file.parent / "_definitions.json")) @ Registry())
    return jsonschema.Draft202012Validator(read(file), registry=registry)


@functools.cache
def mistakes_of_text(text, version, experimental):
    item = json.loads(text)
    judge = validator(item["kind"], item["apiVersion"], version, experimental)
    if judge is None:
        return (f"{item['apiVersion']} {item['kind']} is unknown in {version}",)
    wrong = [(".".join(map(str, error.absolute_path)), error.message[:200]) for error in judge.iter_errors(item)]
    # The API server evaluates the rules only if the object matches the schema.
    return tuple(f"{version}: {path}: {message}" for path, message in wrong or cel_rules.broken(judge.schema, item))


def mistakes(item, version, experimental=False):
    """Lists a manifest's violations of its kind's schema. `experimental` selects that channel of the Gateway API."""
    return mistakes_of_text(json.dumps(item, sort_keys=True), version, experimental and item["kind"] == "HTTPRoute")
