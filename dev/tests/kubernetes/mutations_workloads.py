"""Mutations for the rules about workloads, reachability and Redis: see mutations.py."""

from mutations import container, named, policy, settings, spec, without

PLAIN, DEV, PRODUCTION, SEVERAL, PROXY = ("base+redis", None), ("dev", None), ("production", None), ("production", "providers"), ("production", "forward-proxy")
EDGE, SERVICE = "edge", "session-svc"


def workload(items, name, kind="Deployment"):
    return next(item for item in items if item["kind"] == kind and item["metadata"]["name"] == name)


def redis(items, name="redis"):
    return workload(items, name, "StatefulSet")["spec"]


def file(items, name):
    """Returns the files of the ConfigMap that contains the file `name`."""
    return next(item["data"] for item in items if item["kind"] == "ConfigMap" and name in item.get("data", {}))


def replaced(name, old, new):
    def change(items):
        data = file(items, name)
        assert old in data[name]
        data[name] = data[name].replace(old, new)

    return change


def labels(items, name="edge"):
    return workload(items, name)["spec"]["template"]["metadata"]["labels"]


def spread(items):
    """Returns the term that spreads the edge's pods over nodes."""
    return spec(items)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]


def peers(items, name):
    return policy(items, name)["ingress"][0]["from"]


REACH, ALONE = "only_the_intended_pods_reach_each_other", "a_stranger_in_the_namespace_reaches_nothing"
PROBES, SPREAD = "servers_have_three_probes_and_liveness_asks_for_less", "replicas_are_enough_and_spread_over_zones_and_nodes"
SAME, DIRECT = "both_services_have_the_same_providers", "behind_a_forward_proxy_nothing_goes_to_the_internet_itself"
KEEPS, NAMES = "redis_speaks_tls_keeps_sessions_and_evicts_none", "servers_and_sentinels_are_named_as_their_pods_are"

MUTATIONS = [
    ("the_parts_are_pods_of_their_own", PLAIN, lambda items: without(items, "Deployment", "web")),
    ("the_parts_are_pods_of_their_own", PLAIN, lambda items: spec(items)["containers"].append(spec(items, "web")["containers"][0])),
    ("pods_run_as_a_user_of_10000_or_more", PLAIN, lambda items: spec(items)["securityContext"].update(runAsUser=1000)),
    ("pods_run_as_a_user_of_10000_or_more", PLAIN, lambda items: container(items)["securityContext"].update(runAsUser=10001)),
    ("pods_run_as_a_user_of_10000_or_more", PLAIN, lambda items: container(items)["ports"][0].update(containerPort=80)),
    ("pods_run_as_a_user_of_10000_or_more", ("production", "openshift"), lambda items: spec(items)["securityContext"].update(runAsUser=10001)),
    ("each_workload_has_an_account_of_its_own", PLAIN, lambda items: spec(items).update(serviceAccountName="web")),
    ("each_workload_has_an_account_of_its_own", PLAIN, lambda items: spec(items).update(enableServiceLinks=True)),
    ("each_workload_has_an_account_of_its_own", PLAIN, lambda items: named(items, "ServiceAccount", "web").pop("automountServiceAccountToken")),
    ("every_pod_is_labelled_as_recommended", PLAIN, lambda items: labels(items).pop("app.kubernetes.io/component")),
    ("every_pod_is_labelled_as_recommended", PLAIN, lambda items: labels(items).pop("app.kubernetes.io/version")),
    ("every_pod_is_labelled_as_recommended", PLAIN, lambda items: redis(items)["template"]["metadata"]["labels"].update({"app.kubernetes.io/version": "1"})),
    ("what_cannot_change_later_has_no_changing_label", PLAIN, lambda items: redis(items)["volumeClaimTemplates"][0]["metadata"].update(labels={"app.kubernetes.io/version": "1"})),
    ("what_cannot_change_later_has_no_changing_label", PLAIN, lambda items: workload(items, EDGE)["spec"]["selector"]["matchLabels"].update({"app.kubernetes.io/version": "1"})),
    ("images_of_an_overlay_have_a_tag_or_digest", PRODUCTION, lambda items: container(items).update(image="vestibule-edge")),
    (SPREAD, PLAIN, lambda items: workload(items, SERVICE)["spec"].update(replicas=2)),
    (SPREAD, PRODUCTION, lambda items: named(items, "HorizontalPodAutoscaler", EDGE)["spec"].update(minReplicas=1)),
    (SPREAD, PLAIN, lambda items: redis(items)["template"]["spec"].pop("topologySpreadConstraints")),
    (SPREAD, PLAIN, lambda items: redis(items, "redis-sentinel")["template"]["spec"].pop("affinity")),
    (SPREAD, PLAIN, lambda items: spec(items)["topologySpreadConstraints"].append({**spec(items)["topologySpreadConstraints"][0], "topologyKey": "kubernetes.io/hostname"})),
    (SPREAD, PLAIN, lambda items: spread(items).update(matchLabelKeys=["pod-template-hash"])),
    (SPREAD, PLAIN, lambda items: spec(items)["topologySpreadConstraints"][0].pop("matchLabelKeys")),
    (SPREAD, PLAIN, lambda items: spec(items)["topologySpreadConstraints"][0]["labelSelector"].update(matchLabels={"app.kubernetes.io/name": "web"})),
    ("disruption_budgets_never_block_a_drain", PLAIN, lambda items: without(items, "PodDisruptionBudget", "redis-sentinel")),
    ("disruption_budgets_never_block_a_drain", PLAIN, lambda items: named(items, "PodDisruptionBudget", EDGE)["spec"].update(maxUnavailable=0)),
    ("a_rollout_takes_no_pod_away_before_the_next_is_there", PLAIN, lambda items: workload(items, EDGE)["spec"]["strategy"]["rollingUpdate"].update(maxUnavailable=1)),
    ("a_rollout_takes_no_pod_away_before_the_next_is_there", PLAIN, lambda items: redis(items).pop("minReadySeconds")),
    ("autoscalers_do_not_shrink_in_a_hurry", PRODUCTION, lambda items: named(items, "HorizontalPodAutoscaler", EDGE)["spec"].pop("behavior")),
    (PROBES, PLAIN, lambda items: container(items).pop("startupProbe")),
    (PROBES, PLAIN, lambda items: container(items)["startupProbe"].update(failureThreshold=5)),
    (PROBES, PLAIN, lambda items: container(items)["livenessProbe"]["httpGet"].update(path="/readyz")),
    (PROBES, PLAIN, lambda items: container(items, "web")["livenessProbe"]["httpGet"].update(port="admin")),
    ("the_shutdown_budget_fits_the_grace_period", PLAIN, lambda items: spec(items).update(terminationGracePeriodSeconds=30)),
    ("the_shutdown_budget_fits_the_grace_period", PLAIN, lambda items: settings(items, SERVICE).update(DRAIN_DELAY="2")),
    ("namespaces_enforce_the_restricted_profile_of_one_version", DEV, lambda items: named(items, "Namespace", "localhost")["metadata"]["labels"].update({"pod-security.kubernetes.io/enforce": "baseline"})),
    ("namespaces_enforce_the_restricted_profile_of_one_version", PRODUCTION, lambda items: named(items, "Namespace", "vestibule")["metadata"]["labels"].update({"pod-security.kubernetes.io/warn-version": "latest"})),
    (REACH, PLAIN, lambda items: peers(items, "redis").append({"podSelector": {"matchLabels": {"app.kubernetes.io/name": EDGE}}}) or policy(items, "edge")["egress"].append({"to": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "redis"}}}], "ports": [{"protocol": "TCP", "port": 6379}]})),
    (REACH, PLAIN, lambda items: without(items, "NetworkPolicy", "store-clients")),
    ("each_workload_has_a_policy_of_its_own", PLAIN, lambda items: without(items, "NetworkPolicy", "web")),
    ("each_workload_has_a_policy_of_its_own", PLAIN, lambda items: without(items, "NetworkPolicy", "default-deny")),
    (REACH, DEV, lambda items: without(items, "NetworkPolicy", "edge-from-dev-idp")),
    (REACH, PRODUCTION, lambda items: labels(items, "operator").pop("vestibule.auth/session-caller")),
    (ALONE, PLAIN, lambda items: without(items, "NetworkPolicy", "default-deny") or peers(items, SERVICE).append({"podSelector": {}})),
    ("admin_ports_are_closed_to_the_product_itself", PLAIN, lambda items: policy(items, SERVICE)["ingress"][0]["ports"].append({"protocol": "TCP", "port": "admin"}) or policy(items, EDGE)["egress"][0]["ports"].append({"protocol": "TCP", "port": "admin"})),
    ("whoever_asks_by_name_reaches_dns", PLAIN, lambda items: policy(items, "redis-among-itself")["egress"].pop()),
    ("whoever_asks_by_name_reaches_dns", PLAIN, lambda items: policy(items, "allow-dns")["egress"][0]["ports"].pop()),
    (KEEPS, PLAIN, replaced("redis.conf", "maxmemory-policy noeviction", "maxmemory-policy allkeys-lru")),
    (KEEPS, PLAIN, replaced("redis.conf", "\ntls-auth-clients yes", "\ntls-auth-clients no")),
    (KEEPS, PLAIN, replaced("redis.conf", "appendonly yes", "appendonly no")),
    (KEEPS, PLAIN, replaced("sentinel.conf", "down-after-milliseconds sessions 4000", "down-after-milliseconds sessions 2000")),
    ("sessions_in_use_are_revalidated", PLAIN, lambda items: settings(items, SERVICE).update(SESSION_REVALIDATE_SECS="0")),
    ("policies_have_no_empty_list", PLAIN, lambda items: policy(items, "web").update(egress=[])),
    ("policies_have_no_empty_list", PLAIN, lambda items: policy(items, "redis")["ingress"][0].update({"from": []})),
    ("probes_of_redis_speak_tls", PLAIN, lambda items: redis(items, "redis-sentinel")["template"]["spec"]["containers"][0].update(livenessProbe={"tcpSocket": {"port": "sentinel"}})),
    ("the_closed_default_user_keeps_its_rights", PLAIN, replaced("users.acl", "user default off ~* &* +@all", "user default off")),
    ("the_closed_default_user_keeps_its_rights", PLAIN, replaced("users.acl", "user session-svc on PASSWORDS", "user session-svc on nopass")),
    ("redis_has_room_for_a_rewrite", PLAIN, lambda items: redis(items)["template"]["spec"]["containers"][0]["resources"]["limits"].update(memory="384Mi")),
    ("a_lost_answer_of_dns_stops_no_sentinel_for_two_seconds", PLAIN, lambda items: redis(items, "redis-sentinel")["template"]["spec"].pop("dnsConfig")),
    (SAME, SEVERAL, lambda items: container(items, SERVICE)["envFrom"].pop(0)),
    (SAME, SEVERAL, lambda items: settings(items, "provider").update(OIDC_CLIENT_ID="vestibule")),
    (SAME, SEVERAL, replaced("providers.toml", "/etc/vestibule/provider/partner", "/etc/vestibule/partner/secret")),
    (DIRECT, PROXY, lambda items: policy(items, "allow-provider")["egress"][0]["to"][0]["ipBlock"].update(cidr="0.0.0.0/0")),
    (DIRECT, PROXY, lambda items: policy(items, "allow-provider")["egress"][0]["ports"][0].update(port=443)),
    (DIRECT, PROXY, lambda items: settings(items, "provider").pop("NO_PROXY")),
    (NAMES, PLAIN, lambda items: redis(items).update(replicas=5)),
    (NAMES, PLAIN, lambda items: named(items, "Service", "redis")["spec"].pop("publishNotReadyAddresses")),
    (NAMES, PLAIN, lambda items: redis(items, "redis-sentinel").update(podManagementPolicy="OrderedReady")),
    (NAMES, PRODUCTION, lambda items: named(items, "Certificate", "redis-tls")["spec"]["dnsNames"].remove("redis-1.redis")),
]
