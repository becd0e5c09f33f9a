"""Validates a manifest strictly: by Kubernetes' schemas of each version, or by schemas/ with their CEL rules.

A schema also has the fields that its version switches off by default. Such a field is dropped, so it is a mistake here:
its description says so, or the version before does not know it. Kubernetes switches a new field off in its first
version: https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/#feature-stages
"""

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
VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))
OFF = re.compile(r"\balpha\b(?! feature gate)|\b(?:disabled|off) by default", re.I)


def read(path):
    return json.loads(path.read_text())


def properties_switched_on(judge, properties, value, whole):
    """Validates `properties` as usual, and rejects those that are off by default."""
    if isinstance(value, dict):
        for name in sorted(set(value) & set(properties)):
            if OFF.search(properties[name].get("description", "")):
                yield jsonschema.ValidationError(f"{name} is off by default")
    yield from jsonschema.Draft202012Validator.VALIDATORS["properties"](judge, properties, value, whole)


SwitchedOn = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"properties": properties_switched_on})


@functools.cache
def of_another_project(kind, api, experimental=False):
    file = OWN / f"{kind}{'.experimental' if experimental else ''}.json"
    known = read(file) if file.exists() else None
    return jsonschema.Draft202012Validator(known) if known and known["properties"]["apiVersion"]["const"] == api else None


@functools.cache
def definitions(version):
    return Resource.from_contents(read(KUBERNETES / f"v{version}.0-local-strict/_definitions.json"))


@functools.cache
def of_kubernetes(kind, api, version, judge):
    name = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    file = KUBERNETES / f"v{version}.0-local-strict/{kind.lower()}-{name}.json"
    if not file.exists():
        return None
    return judge(read(file), registry=Resource.from_contents(read(file)) @ (definitions(version) @ Registry()))


@functools.cache
def mistakes_of_text(text, version, judge=SwitchedOn):
    item = json.loads(text)
    known = of_kubernetes(item["kind"], item["apiVersion"], version, judge)
    if known is None:
        return (f"{item['apiVersion']} {item['kind']} is unknown in {version}",)
    return tuple(f"{version}: {place(error)}" for error in known.iter_errors(item))


@functools.cache
def mistakes_of_custom(text, experimental):
    item = json.loads(text)
    known = of_another_project(item["kind"], item["apiVersion"], experimental)
    # The API server evaluates the rules only if the object matches the schema.
    return tuple([place(error) for error in known.iter_errors(item)] or [f"{path}: {message}" for path, message in cel_rules.broken(known.schema, item)])


def place(error):
    return f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def version_before(version):
    return f"1.{int(version[2:]) - 1}"


def mistakes(item, versions=VERSIONS, experimental=False):
    """Lists a manifest's mistakes in successive versions. `experimental` selects that channel of the Gateway API."""
    text = json.dumps(item, sort_keys=True)
    experimental = experimental and item["kind"] == "HTTPRoute"
    if of_another_project(item["kind"], item["apiVersion"], experimental):
        return list(mistakes_of_custom(text, experimental))
    found = list(mistakes_of_text(text, version_before(versions[0]), jsonschema.Draft202012Validator))
    return found + [mistake for version in versions for mistake in mistakes_of_text(text, version)]
