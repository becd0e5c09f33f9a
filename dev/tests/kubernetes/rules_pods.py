"""Rules about pods, and about every manifest."""

import pod_security
import schema
from pair import port_names, rule


@rule
def strictly_valid_for_every_version(pair):
    for item in pair.items:
        for mistake in schema.mistakes(item, pair.versions):
            yield f"{item['kind']}/{item['metadata']['name']}: {mistake}"


@rule
def pods_keep_the_restricted_profile(pair):
    for workload, pod in pair.pods():
        for what in pod_security.broken(pod["spec"]):
            yield f"{workload['metadata']['name']}: {what}"


@rule
def root_file_systems_are_read_only(pair):
    for workload, _, container in pair.containers():
        if not container["securityContext"].get("readOnlyRootFilesystem"):
            yield f"{workload['metadata']['name']}/{container['name']}"


@rule
def memory_is_guaranteed_and_cpu_not_limited(pair):
    for workload, _, container in pair.containers():
        requests, limits = (container.get("resources", {}).get(key, {}) for key in ("requests", "limits"))
        if not {"cpu", "memory", "ephemeral-storage"} <= set(requests) or requests["memory"] != limits.get("memory") or "cpu" in limits:
            yield f"{workload['metadata']['name']}/{container['name']}"


@rule
def no_pod_is_evicted_for_its_log(pair):
    # The kubelet counts the log against the limit, and clients influence the log's size.
    for workload, _, container in pair.containers():
        if "ephemeral-storage" in container.get("resources", {}).get("limits", {}):
            yield f"{workload['metadata']['name']}/{container['name']}"


@rule
def no_pod_has_a_token_of_the_cluster(pair):
    for workload, pod in pair.pods():
        spec, place = pod["spec"], workload["metadata"].get("namespace")
        if spec.get("automountServiceAccountToken") is not False or (place, spec.get("serviceAccountName")) not in pair.names("ServiceAccount"):
            yield workload["metadata"]["name"]
    for item in pair.of("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
        yield f"rights in the cluster: {item['metadata']['name']}"


@rule
def an_autoscaler_owns_the_replicas_it_scales(pair):
    for scaler in pair.of("HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        workload = next((item for item in pair.of(target["kind"]) if item["metadata"]["name"] == target["name"]), None)
        if workload is None or "replicas" in workload["spec"] or scaler["spec"]["minReplicas"] < 2:
            yield scaler["metadata"]["name"]


@rule
def pods_that_are_watched_have_the_port(pair):
    for monitor in pair.of("PodMonitor"):
        pods = pair.selected(monitor["spec"]["selector"], monitor["metadata"].get("namespace"))
        for part in monitor["spec"]["podMetricsEndpoints"]:
            if len(pods) < 2 or not all(part["port"] in port_names(pod) for pod in pods):
                yield part["port"]


@rule
def everything_is_in_a_namespace_and_labelled(pair):
    for item in pair.items:
        if item["kind"] != "Namespace" and not item["metadata"].get("namespace"):
            yield f"{item['kind']}/{item['metadata']['name']}: no namespace"
        if item["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") != "vestibule":
            yield f"{item['kind']}/{item['metadata']['name']}: no label"


@rule
def images_have_a_tag_that_does_not_move(pair):
    for workload, _, container in pair.containers():
        if container["image"].endswith(":latest"):
            yield f"{workload['metadata']['name']}: {container['image']}"
