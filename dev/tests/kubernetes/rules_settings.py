"""Rules about settings, secrets and certificates."""

import re
import tomllib

from pair import pod_of, rule

# Secrets that operators create by hand (docs/kubernetes/install.md). Tools create the others.
MADE_BY_HAND = {
    "provider",
    "edge",
    "session-svc",
    "operator",
    "redis-users",
    "redis-tls",
    "session-svc-tls",
    "edge-session-client",
    "operator-session-client",
    "session-svc-redis-client",
}


@rule
def what_pods_mount_and_read_is_there(pair):
    made = {item["spec"]["secretName"] for item in pair.of("Certificate")} | {item["spec"]["target"]["name"] for item in pair.of("ExternalSecret")}
    made |= {name for _, name in pair.names("Secret")} | MADE_BY_HAND
    for workload, pod, container in pair.containers():
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
        volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"{workload['metadata']['name']}: no volume {mount['name']}"
        for source in container.get("envFrom", []):
            if not source["configMapRef"].get("optional") and pair.config(source["configMapRef"]["name"], workload["metadata"].get("namespace")) is None:
                yield f"{workload['metadata']['name']}: no ConfigMap {source['configMapRef']['name']}"
    for workload, pod in pair.pods():
        for volume in pod["spec"].get("volumes", []):
            if "configMap" in volume and pair.config(volume["configMap"]["name"], workload["metadata"].get("namespace")) is None:
                yield f"{workload['metadata']['name']}: no ConfigMap {volume['configMap']['name']}"
            if "secret" in volume and volume["secret"]["secretName"] not in made:
                yield f"{workload['metadata']['name']}: missing Secret {volume['secret']['secretName']}"


@rule
def secrets_are_files_for_their_owner(pair):
    for workload, _, container in pair.containers():
        if any("secretRef" in source for source in container.get("envFrom", [])) or any("secretKeyRef" in entry.get("valueFrom", {}) for entry in container.get("env", [])):
            yield f"{workload['metadata']['name']}: a secret is a variable"
    for workload, pod in pair.pods():
        for volume in pod["spec"].get("volumes", []):
            if "secret" in volume and volume["secret"].get("defaultMode") != 0o400:
                yield f"{workload['metadata']['name']}: {volume['name']} can be read by others"


@rule
def settings_that_pods_start_with_do_not_change_under_them(pair):
    for item in pair.of("ConfigMap"):
        if "grafana_dashboard" in item["metadata"]["labels"]:
            continue  # Grafana reads it, not our pods
        if item.get("immutable") is not True or not re.search(r"-[0-9a-z]{10}$", item["metadata"]["name"]):
            yield item["metadata"]["name"]


@rule
def files_that_settings_name_are_mounted(pair):
    for name in ("edge", "session-svc"):
        workload = pair.workload(name)
        mounts = [mount["mountPath"] for mount in pod_of(workload)["spec"]["containers"][0]["volumeMounts"]]
        for key, value in pair.settings(workload).items():
            if value.startswith("/") and not any(value.startswith(f"{mount}/") for mount in mounts):
                yield f"{key}={value}"


@rule
def plaintext_is_never_asked_for(pair):
    for name in ("edge", "session-svc"):
        settings = pair.settings(pair.workload(name))
        if settings.get("SESSION_INSECURE", "false") != "false" or settings.get("EDGE_SESSION_SVC_URL", "https:").startswith("http:"):
            yield name


@rule
def callers_of_the_session_service_are_listed(pair):
    workload = pair.workload("session-svc")
    folder = next(volume for volume in pod_of(workload)["spec"]["volumes"] if volume["name"] == "callers")["configMap"]["name"]
    callers = {caller["identity"]: caller["rpcs"] for caller in tomllib.loads(pair.config(folder, workload["metadata"].get("namespace"))["callers.toml"])["caller"]}
    known = {f"dns:{name}" for item in pair.of("Certificate") if "session-client" in item["metadata"]["name"] for name in item["spec"]["dnsNames"]}
    if callers.get("dns:edge.vestibule.svc") != ["*"] or "EndSessions" not in callers.get("dns:operator.vestibule.svc", []):
        yield "edge or operator is missing"
    if any(rpcs == ["*"] for identity, rpcs in callers.items() if identity != "dns:edge.vestibule.svc"):
        yield "another caller may make every call"
    if known - set(callers):
        yield f"certificates without a caller: {known - set(callers)}"


@rule
def certificates_are_renewed_in_time_by_an_issuer_that_is_there(pair):
    hours = lambda text: int(text.removesuffix("h"))
    for item in pair.of("Certificate"):
        spec = item["spec"]
        if (item["metadata"].get("namespace"), spec["issuerRef"]["name"]) not in pair.names("Issuer"):
            yield f"{item['metadata']['name']}: no issuer"
        if not spec.get("isCA") and not 0 < hours(spec.get("renewBefore", "0h")) < hours(spec["duration"]) <= 24:
            yield f"{item['metadata']['name']}: lives too long"


@rule
def sessions_in_use_are_revalidated(pair):
    """Otherwise a session outlives its account at a provider without back-channel logout."""
    told = pair.settings(pair.workload("session-svc")).get("SESSION_REVALIDATE_SECS")
    if told != "900":
        yield f"every {told} seconds"
