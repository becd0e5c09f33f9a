"""Mutations that each rule must detect: (rule, pair, change to a copy of the manifests)."""


def named(items, kind, name):
    return next(item for item in items if item["kind"] == kind and item["metadata"]["name"].startswith(name))


def spec(items, workload="edge"):
    return named(items, "Deployment", workload)["spec"]["template"]["spec"]


def container(items, workload="edge"):
    return spec(items, workload)["containers"][0]


def settings(items, name):
    """Returns the data of a workload's ConfigMap, NAME-settings-HASH."""
    return next(item for item in items if item["kind"] == "ConfigMap" and item["metadata"]["name"].startswith(f"{name}-settings-"))["data"]


def callers(items):
    return next(item for item in items if item["kind"] == "ConfigMap" and "callers.toml" in item["data"])["data"]


def policy(items, name):
    return next(item for item in items if item["kind"] == "NetworkPolicy" and item["metadata"]["name"] == name)["spec"]


def without(items, kind, name):
    items[:] = [item for item in items if not (item["kind"] == kind and item["metadata"]["name"].startswith(name))]


def context(**fields):
    return lambda items: container(items)["securityContext"].update(fields)


def pod_context(**fields):
    return lambda items: spec(items)["securityContext"].update(fields)


PLAIN, WAY, GATEWAY, CALLERS, WATCHED, SCALED = (
    ("base+redis", None),
    ("production", None),
    ("base+redis", "gateway-api"),
    ("base+redis", "session-callers"),
    ("base+redis", "monitoring"),
    ("production", None),
)
RESTRICTED = "pods_keep_the_restricted_profile"

MUTATIONS = [
    ("strictly_valid_for_every_version", PLAIN, lambda items: spec(items).update(graceSeconds=5)),
    ("strictly_valid_for_every_version", PLAIN, lambda items: container(items)["resources"].update(limit={})),
    ("strictly_valid_for_every_version", GATEWAY, lambda items: named(items, "HTTPRoute", "edge")["spec"]["rules"][0].update(timeout="0s")),
    ("strictly_valid_for_every_version", WATCHED, lambda items: named(items, "PodMonitor", "vestibule")["spec"].update(interval="30s")),
    (RESTRICTED, PLAIN, context(allowPrivilegeEscalation=True)),
    (RESTRICTED, PLAIN, context(privileged=True)),
    (RESTRICTED, PLAIN, context(capabilities={})),
    (RESTRICTED, PLAIN, context(capabilities={"drop": ["ALL"], "add": ["NET_ADMIN"]})),
    (RESTRICTED, PLAIN, context(procMount="Unmasked")),
    (RESTRICTED, PLAIN, context(runAsUser=0)),
    (RESTRICTED, PLAIN, context(runAsNonRoot=False)),
    (RESTRICTED, PLAIN, context(seccompProfile={"type": "Unconfined"})),
    (RESTRICTED, PLAIN, context(appArmorProfile={"type": "Unconfined"})),
    (RESTRICTED, PLAIN, context(seLinuxOptions={"role": "admin"})),
    (RESTRICTED, PLAIN, context(windowsOptions={"hostProcess": True})),
    (RESTRICTED, PLAIN, pod_context(runAsNonRoot=None)),
    (RESTRICTED, PLAIN, lambda items: spec(items)["securityContext"].pop("seccompProfile")),
    (RESTRICTED, PLAIN, pod_context(sysctls=[{"name": "kernel.msgmax", "value": "1"}])),
    (RESTRICTED, PLAIN, lambda items: spec(items).update(hostNetwork=True)),
    (RESTRICTED, PLAIN, lambda items: spec(items).update(hostPID=True)),
    (RESTRICTED, PLAIN, lambda items: spec(items).update(hostIPC=True)),
    (RESTRICTED, PLAIN, lambda items: spec(items)["volumes"].append({"name": "node", "hostPath": {"path": "/"}})),
    (RESTRICTED, PLAIN, lambda items: container(items)["ports"][0].update(hostPort=3000)),
    (RESTRICTED, PLAIN, lambda items: container(items)["livenessProbe"]["httpGet"].update(host="example.com")),
    ("root_file_systems_are_read_only", PLAIN, context(readOnlyRootFilesystem=False)),
    ("memory_is_guaranteed_and_cpu_not_limited", PLAIN, lambda items: container(items)["resources"]["requests"].update(memory="1Mi")),
    ("memory_is_guaranteed_and_cpu_not_limited", PLAIN, lambda items: container(items)["resources"]["limits"].update(cpu="1")),
    ("memory_is_guaranteed_and_cpu_not_limited", PLAIN, lambda items: container(items)["resources"]["requests"].pop("ephemeral-storage")),
    ("no_pod_is_evicted_for_its_log", PLAIN, lambda items: container(items)["resources"]["limits"].update({"ephemeral-storage": "64Mi"})),
    ("no_pod_is_evicted_for_its_log", PLAIN, lambda items: named(items, "StatefulSet", "redis")["spec"]["template"]["spec"]["containers"][1]["resources"]["limits"].update({"ephemeral-storage": "1Gi"})),
    ("no_pod_has_a_token_of_the_cluster", PLAIN, lambda items: spec(items).update(automountServiceAccountToken=True)),
    ("no_pod_has_a_token_of_the_cluster", PLAIN, lambda items: without(items, "ServiceAccount", "edge")),
    ("no_pod_has_a_token_of_the_cluster", PLAIN, lambda items: items.append({"kind": "Role", "metadata": {"name": "reader"}})),
    ("an_autoscaler_owns_the_replicas_it_scales", SCALED, lambda items: named(items, "Deployment", "edge")["spec"].update(replicas=2)),
    ("pods_that_are_watched_have_the_port", WATCHED, lambda items: named(items, "PodMonitor", "vestibule")["spec"]["podMetricsEndpoints"][0].update(port="metrics")),
    ("everything_is_in_a_namespace_and_labelled", PLAIN, lambda items: named(items, "Service", "edge")["metadata"].pop("namespace")),
    ("everything_is_in_a_namespace_and_labelled", PLAIN, lambda items: named(items, "Service", "edge")["metadata"].pop("labels")),
    ("images_have_a_tag_that_does_not_move", WAY, lambda items: container(items).update(image="vestibule-edge:latest")),
    ("what_pods_mount_and_read_is_there", PLAIN, lambda items: without(items, "ConfigMap", "edge-settings")),
    ("what_pods_mount_and_read_is_there", PLAIN, lambda items: without(items, "ConfigMap", "edge-routes")),
    ("what_pods_mount_and_read_is_there", PLAIN, lambda items: spec(items)["volumes"][0].update(name="other")),
    ("what_pods_mount_and_read_is_there", PLAIN, lambda items: spec(items)["volumes"].append({"name": "x", "secret": {"secretName": "nobody-makes", "defaultMode": 256}})),
    ("secrets_are_files_for_their_owner", PLAIN, lambda items: container(items)["envFrom"].append({"secretRef": {"name": "edge"}})),
    ("secrets_are_files_for_their_owner", PLAIN, lambda items: container(items)["env"].append({"name": "S", "valueFrom": {"secretKeyRef": {"name": "edge", "key": "x"}}})),
    ("secrets_are_files_for_their_owner", PLAIN, lambda items: next(volume for volume in spec(items)["volumes"] if "secret" in volume)["secret"].pop("defaultMode")),
    ("settings_that_pods_start_with_do_not_change_under_them", PLAIN, lambda items: named(items, "ConfigMap", "edge").pop("immutable")),
    ("settings_that_pods_start_with_do_not_change_under_them", PLAIN, lambda items: named(items, "ConfigMap", "edge")["metadata"].update(name="edge-settings")),
    ("files_that_settings_name_are_mounted", PLAIN, lambda items: settings(items, "edge").update(EDGE_SECRET_FILE="/etc/elsewhere/edge-secret")),
    ("plaintext_is_never_asked_for", PLAIN, lambda items: settings(items, "session-svc").update(SESSION_INSECURE="true")),
    ("plaintext_is_never_asked_for", PLAIN, lambda items: settings(items, "edge").update(EDGE_SESSION_SVC_URL="http://session-svc-headless:50051")),
    ("callers_of_the_session_service_are_listed", PLAIN, lambda items: callers(items).update({"callers.toml": callers(items)["callers.toml"].replace("dns:operator", "dns:support")})),
    ("callers_of_the_session_service_are_listed", CALLERS, lambda items: callers(items).update({"callers.toml": callers(items)["callers.toml"].replace('["GetSession", "GetAccessToken"]', '["*"]')})),
    ("callers_of_the_session_service_are_listed", CALLERS, lambda items: named(items, "Certificate", "edge-session-client")["spec"].update(dnsNames=["edge"])),
    ("certificates_are_renewed_in_time_by_an_issuer_that_is_there", CALLERS, lambda items: named(items, "Certificate", "session-svc-tls")["spec"].update(duration="2160h")),
    ("certificates_are_renewed_in_time_by_an_issuer_that_is_there", CALLERS, lambda items: named(items, "Certificate", "session-svc-tls")["spec"].pop("renewBefore")),
    ("certificates_are_renewed_in_time_by_an_issuer_that_is_there", CALLERS, lambda items: named(items, "Certificate", "session-svc-tls")["spec"]["issuerRef"].update(name="other")),
    ("services_lead_to_ports_that_are_there", PLAIN, lambda items: named(items, "Service", "edge")["spec"]["ports"][0].update(targetPort="https")),
    ("services_lead_to_ports_that_are_there", PLAIN, lambda items: named(items, "Service", "edge")["spec"].update(type="LoadBalancer")),
    ("everything_is_closed_unless_a_policy_opens_it", PLAIN, lambda items: without(items, "NetworkPolicy", "default-deny")),
    ("policies_name_pods_and_ports", PLAIN, lambda items: policy(items, "web")["ingress"][0].pop("ports")),
    ("policies_name_pods_and_ports", PLAIN, lambda items: policy(items, "web")["ingress"][0].update({"from": []})),
    ("policies_name_pods_and_ports", PLAIN, lambda items: policy(items, "web")["ingress"][0]["ports"][0].update(port="https")),
    ("policies_name_pods_and_ports", PLAIN, lambda items: policy(items, "web").update(podSelector={"matchLabels": {"app.kubernetes.io/name": "wep"}})),
    ("policies_name_pods_and_ports", CALLERS, lambda items: policy(items, "session-svc-callers")["ingress"][0].update({"from": [{"namespaceSelector": {}}, {"podSelector": {"matchLabels": {"a": "b"}}}]})),
    ("only_the_edge_is_reached_from_outside", WAY, lambda items: named(items, "Ingress", "edge")["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"].update(name="session-svc")),
    ("only_the_edge_is_reached_from_outside", GATEWAY, lambda items: named(items, "HTTPRoute", "edge")["spec"]["rules"][0]["backendRefs"][0].update(port=9300)),
    ("only_the_edge_is_reached_from_outside", ("base+redis", "gateway-api/external-auth"), lambda items: named(items, "ReferenceGrant", "edge")["spec"]["to"][0].update(name="session-svc")),
    ("ways_in_speak_tls", WAY, lambda items: named(items, "Ingress", "edge")["spec"].pop("tls")),
    ("ways_in_speak_tls", GATEWAY, lambda items: named(items, "HTTPRoute", "edge")["spec"]["parentRefs"][0].update(sectionName="http")),
    ("who_reaches_the_edge_is_said_in_one_place", WAY, lambda items: without(items, "NetworkPolicy", "edge-from-ingress")),
    ("who_reaches_the_edge_is_said_in_one_place", ("production", "forward-auth"), lambda items: policy(items, "edge-from-checks")["ingress"][0].update({"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]})),
    ("trusted_proxies_are_named_and_few", WAY, lambda items: settings(items, "edge").update(EDGE_TRUSTED_PROXIES="10.0.0.0/8")),
    ("trusted_proxies_are_named_and_few", WAY, lambda items: settings(items, "edge").pop("EDGE_TRUSTED_PROXIES")),
    ("no_controller_caps_what_applications_take", WAY, lambda items: named(items, "Ingress", "edge")["metadata"]["annotations"].update({"nginx.org/client-max-body-size": "1m"})),
]
