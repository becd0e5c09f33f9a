"""Rules about workloads: users, images, replicas, rollouts, probes, shutdown, labels."""

import math
import re

from pair import matches, rule

LEAST = {"edge": 2, "session-svc": 3, "web": 2, "redis": 3, "redis-sentinel": 3}  # overlays for one machine may have fewer
SINGLE = {"operator", "dev-idp"}  # their callers can wait for a new pod
DRAIN_SECONDS = 25  # the services' longest drain
LEASE_SECONDS = 15  # the longest lease of a refresh
SERVICES = {"edge": "EDGE", "session-svc": "SESSION"}
DEVELOPMENT = "vestibule-dev"


def is_for_development(pair):
    return DEVELOPMENT in {item["metadata"]["name"] for item in pair.of("Namespace")}


def serving(pair):
    """Lists long-running workloads."""
    return [(workload, pod) for workload, pod in pair.pods() if workload["kind"] in ("Deployment", "StatefulSet")]


@rule
def the_parts_are_pods_of_their_own(pair):
    names = {workload["metadata"]["name"] for workload, _ in pair.pods()}
    if not {"edge", "session-svc", "web"} <= names:
        yield f"only {sorted(names)}"
    for workload, pod in pair.pods():
        if sum(1 for container in pod["spec"]["containers"] if container.get("ports")) > 1:
            yield f"{workload['metadata']['name']}: several servers in a pod"


@rule
def pods_run_as_a_user_of_10000_or_more(pair):
    for workload, pod, container in pair.containers():
        context = pod["spec"]["securityContext"]
        if pod["metadata"].get("annotations", {}).get("openshift.io/required-scc") == "restricted-v2":
            if {"runAsUser", "runAsGroup", "fsGroup"} & set(context):
                yield f"{workload['metadata']['name']}: OpenShift refuses users that are named"
        elif min(context.get("runAsUser", 0), context.get("runAsGroup", 0)) < 10000 or "runAsUser" in container["securityContext"]:
            yield workload["metadata"]["name"]
        if any(port["containerPort"] < 1024 for port in container.get("ports", [])):
            yield f"{workload['metadata']['name']}: a port for root"


@rule
def each_workload_has_an_account_of_its_own(pair):
    accounts = {(item["metadata"].get("namespace"), item["metadata"]["name"]): item for item in pair.of("ServiceAccount")}
    for workload, pod in pair.pods():
        name, place = workload["metadata"]["name"], workload["metadata"].get("namespace")
        account = accounts.get((place, name), {})
        if pod["spec"]["serviceAccountName"] != name or account.get("automountServiceAccountToken") is not False or pod["spec"].get("enableServiceLinks") is not False:
            yield name


@rule
def every_pod_is_labelled_as_recommended(pair):
    if not any("app.kubernetes.io/instance" in item["metadata"].get("labels", {}) for item in pair.items):
        yield "nothing is labelled"
    for workload, pod in pair.pods():
        for key in ("name", "component", "instance", "part-of", "managed-by"):
            if not pod["metadata"]["labels"].get(f"app.kubernetes.io/{key}"):
                yield f"{workload['metadata']['name']}: {key}"
        if ("app.kubernetes.io/version" in pod["metadata"]["labels"]) == (workload["kind"] == "StatefulSet"):
            yield f"{workload['metadata']['name']}: version"


@rule
def what_cannot_change_later_has_no_changing_label(pair):
    for workload, _ in serving(pair):
        for key in (*workload["spec"]["selector"]["matchLabels"], *(key for claim in workload["spec"].get("volumeClaimTemplates", []) for key in claim["metadata"].get("labels", {}))):
            if key != "app.kubernetes.io/name":
                yield f"{workload['metadata']['name']}: {key}"


@rule
def images_of_an_overlay_have_a_tag_or_digest(pair):
    for workload, _, container in pair.containers():
        named = re.search(r"(:[\w.-]+|@sha256:[0-9a-f]{64})$", container["image"])
        if pair.of("Namespace") and not named:
            yield f"{workload['metadata']['name']}: {container['image']}"


@rule
def replicas_are_enough_and_spread_over_zones_and_nodes(pair):
    for workload, pod in serving(pair):
        name = workload["metadata"]["name"]
        if name in SINGLE:
            continue
        least = 2 if is_for_development(pair) else LEAST[name]
        scalers = [item["spec"]["minReplicas"] for item in pair.of("HorizontalPodAutoscaler") if item["spec"]["scaleTargetRef"]["name"] == name]
        if min([workload["spec"].get("replicas", math.inf), *scalers]) < least:
            yield f"{name}: fewer than {least}"
        zones = pod["spec"].get("topologySpreadConstraints", [])
        nodes = [term["podAffinityTerm"] for term in pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get("preferredDuringSchedulingIgnoredDuringExecution", [])]
        # With constraints on both node and zone, the scheduler ignores both on a node without a zone.
        if [part["topologyKey"] for part in zones] != ["topology.kubernetes.io/zone"] or [part["topologyKey"] for part in nodes] != ["kubernetes.io/hostname"]:
            yield f"{name}: spread over {[part['topologyKey'] for part in (*zones, *nodes)]}"
        for part in (*zones, *nodes):
            if not matches(part["labelSelector"], pod["metadata"]["labels"]):
                yield f"{name}: spreads other pods"
        counts_old_pods = [part.get("matchLabelKeys") != ["pod-template-hash"] for part in (*zones, *nodes)]
        if workload["kind"] == "Deployment" and counts_old_pods != [False, pair.versions[0] < "1.31"]:
            yield f"{name}: counts old pods over {counts_old_pods}"


@rule
def disruption_budgets_never_block_a_drain(pair):
    for workload, pod in serving(pair):
        budgets = [item["spec"] for item in pair.of("PodDisruptionBudget") if matches(item["spec"]["selector"], pod["metadata"]["labels"])]
        if [(spec.get("maxUnavailable"), spec.get("unhealthyPodEvictionPolicy")) for spec in budgets] != [(1, "AlwaysAllow")]:
            yield workload["metadata"]["name"]


@rule
def a_rollout_takes_no_pod_away_before_the_next_is_there(pair):
    for workload, _ in serving(pair):
        spec, name = workload["spec"], workload["metadata"]["name"]
        if not spec.get("minReadySeconds"):
            yield f"{name}: minReadySeconds"
        if workload["kind"] == "Deployment" and name != "dev-idp" and (spec["strategy"].get("rollingUpdate") != {"maxUnavailable": 0, "maxSurge": 1} or not spec.get("progressDeadlineSeconds")):
            yield f"{name}: strategy"


@rule
def autoscalers_do_not_shrink_in_a_hurry(pair):
    for scaler in pair.of("HorizontalPodAutoscaler"):
        if scaler["spec"].get("behavior", {}).get("scaleDown", {}).get("stabilizationWindowSeconds", 0) < 300:
            yield scaler["metadata"]["name"]


@rule
def servers_have_three_probes_and_liveness_asks_for_less(pair):
    for workload, _, container in pair.containers():
        if not container.get("ports"):
            continue
        name, ports = workload["metadata"]["name"], {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            action = container.get(probe, {})
            if not {"httpGet", "tcpSocket", "exec"} & set(action):
                yield f"{name}: no {probe}"
            port = (action.get("httpGet") or action.get("tcpSocket") or {}).get("port")
            if port is not None and port not in ports:
                yield f"{name}: {probe} asks a port that is not there"
        startup = container.get("startupProbe", {})
        if startup.get("periodSeconds", 0) * startup.get("failureThreshold", 0) < 30:
            yield f"{name}: little time to start"
        if name in SERVICES:
            asked = [container.get(probe, {}).get("httpGet") for probe in ("livenessProbe", "readinessProbe")]
            if asked != [{"path": "/livez", "port": "admin"}, {"path": "/readyz", "port": "admin"}]:
                yield f"{name}: {asked}"


@rule
def the_shutdown_budget_fits_the_grace_period(pair):
    for name in SERVICES:
        workload = pair.workload(name)
        pod, settings = workload["spec"]["template"]["spec"], pair.settings(workload)
        delay = int(settings["DRAIN_DELAY"])
        provider = math.ceil(int(settings.get("OIDC_HTTP_TIMEOUT_MS", "5000")) / 1000)
        if delay <= pod["containers"][0]["readinessProbe"]["periodSeconds"]:
            yield f"{name}: the port closes before the endpoints change"
        if delay + DRAIN_SECONDS + provider + LEASE_SECONDS >= pod["terminationGracePeriodSeconds"]:
            yield f"{name}: killed before its work is done"


@rule
def namespaces_enforce_the_restricted_profile_of_one_version(pair):
    for item in pair.of("Namespace"):
        labels = item["metadata"]["labels"]
        for mode in ("enforce", "audit", "warn"):
            key = f"pod-security.kubernetes.io/{mode}"
            if labels.get(key) != "restricted" or not re.fullmatch(r"v1\.\d+", labels.get(f"{key}-version", "")):
                yield f"{item['metadata']['name']}: {mode}"
