"""Rules about which pods may connect to which."""

from pair import matches, rule

# Caller and callee of each allowed connection, if the pair has both.
INTENDED = {
    ("edge", "session-svc"),
    ("edge", "web"),
    ("operator", "session-svc"),
    *((client, server) for client in ("session-svc", "check-store", "redis", "redis-sentinel") for server in ("redis", "redis-sentinel")),
    ("edge", "dev-idp"),
    ("session-svc", "dev-idp"),
    ("dev-idp", "edge"),
}
DNS = {("UDP", 53), ("TCP", 53)}
STRANGER = {"app.kubernetes.io/name": "something-else"}


class Network:
    def __init__(self, pair):
        self.policies = pair.of("NetworkPolicy")

    def of(self, place, labels, direction):
        """Lists the specs of the policies for a pod in one direction."""
        return [
            item["spec"]
            for item in self.policies
            if item["metadata"].get("namespace") == place and matches(item["spec"]["podSelector"], labels) and direction.title() in item["spec"]["policyTypes"]
        ]

    def allowed(self, pod, other, direction, ports):
        (place, labels), (others_place, others_labels) = pod, other
        policies = self.of(place, labels, direction)
        peers = "from" if direction == "ingress" else "to"
        rules = [part for spec in policies for part in spec.get(direction) or []]

        def is_meant(peer):
            if "ipBlock" in peer:
                return False
            if "namespaceSelector" in peer:
                space = {"kubernetes.io/metadata.name": others_place}
                return matches(peer["namespaceSelector"], space) and matches(peer.get("podSelector", {}), others_labels)
            return place == others_place and matches(peer["podSelector"], others_labels)

        return not policies or any(any(is_meant(peer) for peer in part[peers]) and any(entry["port"] in ports for entry in part["ports"]) for part in rules)

    def reaches(self, source, target, ports):
        return self.allowed(source, target, "egress", ports) and self.allowed(target, source, "ingress", ports)


def places(pair):
    """Collects each workload's namespace, labels and ports, without admin ports."""
    found = {}
    for workload, pod in pair.pods():
        ports = {value for container in pod["spec"]["containers"] for port in container.get("ports", []) if port["name"] != "admin" for value in (port["name"], port["containerPort"])}
        found[workload["metadata"]["name"]] = ((workload["metadata"].get("namespace"), pod["metadata"]["labels"]), ports)
    return found


@rule
def only_the_intended_pods_reach_each_other(pair):
    network, known = Network(pair), places(pair)
    for source, (caller, _) in known.items():
        for target, (called, ports) in known.items():
            reached = bool(ports) and network.reaches(caller, called, ports)
            if reached != ((source, target) in INTENDED):
                yield f"{source} {'reaches' if reached else 'does not reach'} {target}"


@rule
def a_stranger_in_the_namespace_reaches_nothing(pair):
    network = Network(pair)
    for target, (called, ports) in places(pair).items():
        if ports and network.reaches((called[0], STRANGER), called, ports):
            yield target


@rule
def admin_ports_are_closed_to_the_product_itself(pair):
    network, known = Network(pair), places(pair)
    for target in ("edge", "session-svc"):
        for source, (caller, _) in known.items():
            if network.reaches(caller, known[target][0], {"admin", 9300, 9301}):
                yield f"{source} reaches the admin port of {target}"


@rule
def whoever_asks_by_name_reaches_dns(pair):
    network = Network(pair)
    for name, (caller, _) in places(pair).items():
        asked = {
            (port["protocol"], port["port"])
            for spec in network.of(*caller, "egress")
            for part in spec.get("egress") or []
            if any(matches(peer.get("podSelector", {}), {"k8s-app": "kube-dns"}) and peer.get("podSelector") for peer in part["to"])
            for port in part["ports"]
        }
        if asked != (set() if name == "web" else DNS):
            yield f"{name}: {sorted(asked)}"
