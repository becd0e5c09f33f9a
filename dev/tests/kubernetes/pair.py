"""The manifests of one pair, with queries for rules. A rule is a function that yields a text for each violation."""

import pod_security
import schema

RULES = {}


def rule(function):
    RULES[function.__name__] = function
    return function


class Pair:
    """The manifests of one pair, by kind, and the Kubernetes versions that they are for."""

    def __init__(self, items, versions=schema.VERSIONS):
        self.items, self.versions = items, versions

    def of(self, *kinds):
        return [item for item in self.items if item["kind"] in kinds]

    def names(self, *kinds):
        return {(item["metadata"].get("namespace"), item["metadata"]["name"]) for item in self.of(*kinds)}

    def pods(self):
        """Yields each workload with its pod template."""
        for workload in self.of("Deployment", "StatefulSet", "DaemonSet", "Job"):
            yield workload, workload["spec"]["template"]
        for workload in self.of("CronJob"):
            yield workload, workload["spec"]["jobTemplate"]["spec"]["template"]

    def containers(self):
        for workload, pod in self.pods():
            for container in pod_security.containers(pod["spec"]):
                yield workload, pod, container

    def selected(self, selector, namespace):
        return [pod for workload, pod in self.pods() if workload["metadata"].get("namespace") == namespace and matches(selector, pod["metadata"]["labels"])]

    def config(self, name, namespace):
        found = [item for item in self.of("ConfigMap") if item["metadata"]["name"] == name and item["metadata"].get("namespace") == namespace]
        return found[0].get("data", {}) if found else None

    def settings(self, workload):
        """Returns the variables of a workload's first container that the manifests set."""
        container = pod_of(workload)["spec"]["containers"][0]
        values = {}
        for source in container.get("envFrom", []):
            values |= self.config(source["configMapRef"]["name"], workload["metadata"].get("namespace")) or {}
        for entry in container.get("env", []):
            reference = entry.get("valueFrom", {}).get("configMapKeyRef")
            if reference:
                config = self.config(reference["name"], workload["metadata"].get("namespace")) or {}
                values |= {entry["name"]: config[reference["key"]]} if reference["key"] in config else {}
            elif "value" in entry:
                values[entry["name"]] = entry["value"]
        return values

    def workload(self, name):
        return next(workload for workload, _ in self.pods() if workload["metadata"]["name"] == name)


def pod_of(workload):
    spec = workload["spec"]
    return spec["jobTemplate"]["spec"]["template"] if workload["kind"] == "CronJob" else spec["template"]


def matches(selector, labels):
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(labels.get(part["key"]) in part["values"] for part in selector.get("matchExpressions", []))


def port_names(pod):
    return {port["name"] for container in pod["spec"]["containers"] for port in container.get("ports", [])}
