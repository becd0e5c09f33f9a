"""Rules about network policies, routes and trusted proxies."""

import ipaddress

from pair import matches, port_names, rule

WIDEST_PROXIES = {4: 12, 6: 40}  # prefix lengths that fit a cluster's pod network, but no whole private range


@rule
def services_lead_to_ports_that_are_there(pair):
    for service in pair.of("Service"):
        pods = pair.selected({"matchLabels": service["spec"]["selector"]}, service["metadata"].get("namespace"))
        if len(pods) != 1 or not {port["targetPort"] for port in service["spec"]["ports"]} <= port_names(pods[0]):
            yield service["metadata"]["name"]
        if service["spec"].get("type", "ClusterIP") != "ClusterIP":
            yield f"{service['metadata']['name']} is open to the outside"


@rule
def everything_is_closed_unless_a_policy_opens_it(pair):
    for space in {workload["metadata"].get("namespace") for workload, _ in pair.pods()}:
        policies = [item["spec"] for item in pair.of("NetworkPolicy") if item["metadata"].get("namespace") == space]
        if not any(spec["podSelector"] == {} and sorted(spec["policyTypes"]) == ["Egress", "Ingress"] and "ingress" not in spec and "egress" not in spec for spec in policies):
            yield f"no default-deny in {space}"


def empty_lists(value, path=""):
    if isinstance(value, list) and not value:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from empty_lists(part, f"{path}.{key}")


@rule
def policies_have_no_empty_list(pair):
    """The API server drops empty lists, so `kubectl diff` would always differ. `policyTypes` closes a direction."""
    for policy in pair.of("NetworkPolicy"):
        for path in empty_lists(policy["spec"]):
            yield f"{policy['metadata']['name']}: {path}"


@rule
def policies_name_pods_and_ports(pair):
    for policy in pair.of("NetworkPolicy"):
        name, spec = policy["metadata"]["name"], policy["spec"]
        chosen = pair.selected(spec["podSelector"], policy["metadata"].get("namespace"))
        if not chosen and "store-client" not in str(spec["podSelector"]):
            yield f"{name} is for no pod"
        for direction, key in (("ingress", "from"), ("egress", "to")):
            for part in spec.get(direction) or []:
                if not part.get(key) or not part.get("ports"):
                    yield f"{name}: {direction} for all pods, or to every port"
                    continue
                if any("ipBlock" not in peer and not peer.get("podSelector") for peer in part[key]):
                    yield f"{name}: a namespace as a whole"
                if direction == "ingress" and not all(port["port"] in port_names(pod) for port in part["ports"] for pod in chosen):
                    yield f"{name}: a port that its pods do not have"


def backends(pair):
    """Yields the Services behind Ingresses and HTTPRoutes: (route, Service, port)."""
    for ingress in pair.of("Ingress"):
        for host in ingress["spec"]["rules"]:
            for path in host["http"]["paths"]:
                yield ingress, path["backend"]["service"]["name"], path["backend"]["service"]["port"].get("name")
    for route in pair.of("HTTPRoute"):
        for part in route["spec"].get("rules", []):
            for backend in part.get("backendRefs", []):
                yield route, backend["name"], backend["port"]


@rule
def only_the_edge_is_reached_from_outside(pair):
    services = {item["metadata"]["name"]: item for item in pair.of("Service")}
    for route, name, port in backends(pair):
        if name != "edge" or port not in {value for part in services["edge"]["spec"]["ports"] for value in (part["name"], part["port"])}:
            yield f"{route['kind']}/{route['metadata']['name']} leads to {name}:{port}"
    for grant in pair.of("ReferenceGrant"):
        for target in grant["spec"]["to"]:
            if not target["name"].startswith("edge") or target["name"] not in services:
                yield f"{grant['metadata']['name']} grants {target['name']}"


@rule
def each_workload_has_a_policy_of_its_own(pair):
    for workload, pod in pair.pods():
        place, labels = workload["metadata"].get("namespace"), pod["metadata"]["labels"]
        policies = [item["spec"]["podSelector"] for item in pair.of("NetworkPolicy") if item["metadata"].get("namespace") == place]
        if not any(selector and matches(selector, labels) for selector in policies) or {} not in policies:
            yield workload["metadata"]["name"]


@rule
def ways_in_speak_tls(pair):
    for ingress in pair.of("Ingress"):
        hosts = {part["host"] for part in ingress["spec"]["rules"]}
        if hosts - {host for part in ingress["spec"].get("tls", []) for host in part["hosts"]}:
            yield f"Ingress/{ingress['metadata']['name']}"
    for route in pair.of("HTTPRoute"):
        plain = any(parent.get("sectionName") != "https" for parent in route["spec"]["parentRefs"])
        redirects = all(part.get("filters", [{}])[0].get("requestRedirect", {}).get("scheme") == "https" and not part.get("backendRefs") for part in route["spec"]["rules"])
        if plain and not redirects:
            yield f"HTTPRoute/{route['metadata']['name']}"


@rule
def who_reaches_the_edge_is_said_in_one_place(pair):
    peers = {str(item["spec"]["ingress"][0]["from"]) for item in pair.of("NetworkPolicy") if item["metadata"].get("labels", {}).get("vestibule.auth/peers") == "proxies"}
    if len(peers) > 1:
        yield "policies for proxies name different ones"
    if (pair.of("Ingress") or pair.of("HTTPRoute")) and not peers:
        yield "a way in, and no policy for it"


@rule
def trusted_proxies_are_named_and_few(pair):
    value = pair.settings(pair.workload("edge")).get("EDGE_TRUSTED_PROXIES")
    if (pair.of("Ingress") or pair.of("HTTPRoute")) and not value:
        yield "the edge would trust no proxy: EDGE_TRUSTED_PROXIES"
    if value and value != "to-be-set":
        for part in value.split(","):
            network = ipaddress.ip_network(part)
            if network.prefixlen < WIDEST_PROXIES[network.version]:
                yield f"the edge would believe {part}"


@rule
def no_controller_caps_what_applications_take(pair):
    for ingress in pair.of("Ingress"):
        for key, value in ingress["metadata"].get("annotations", {}).items():
            if "body-size" in key and value != "0":
                yield f"{key}: {value}"
