"""Rules about the component redis, for pairs that have it."""

import re

from pair import rule

MIB = {"mb": 1024**2, "Mi": 1024**2, "gb": 1024**3, "Gi": 1024**3}
COPIES_OF_PAGES = 2  # while Redis rewrites the append-only file, all pages can exist twice
COPIES = {"redis": 6379, "redis-sentinel": 26379}


def size(text):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) * MIB[unit]


def settings(pair):
    """Returns the Redis settings files, if the pair runs Redis."""
    if not any(workload["metadata"]["name"] == "redis" for workload, _ in pair.pods()):
        return None
    return next(item["data"] for item in pair.of("ConfigMap") if "redis.conf" in item.get("data", {}))


@rule
def redis_speaks_tls_keeps_sessions_and_evicts_none(pair):
    files = settings(pair) or {}
    wanted = {
        "redis.conf": ("port 0", "tls-replication yes", "tls-auth-clients yes", "maxmemory-policy noeviction", "appendonly yes", "min-replicas-to-write 1", "min-replicas-max-lag 3", "repl-diskless-sync-delay 0"),
        "sentinel.conf": ("port 0", "tls-replication yes", "tls-auth-clients yes", "sentinel resolve-hostnames yes", "sentinel announce-hostnames yes"),
    }
    for file, lines in wanted.items():
        for line in lines:
            if files and line not in files[file].splitlines():
                yield f"{file}: {line}"
    lag, down = (re.search(pattern, text, re.MULTILINE) for pattern, text in ((r"^min-replicas-max-lag (\d+)$", files.get("redis.conf", "")), (r"^sentinel down-after-milliseconds sessions (\d+)$", files.get("sentinel.conf", ""))))
    if files and (not lag or not down or int(down[1]) <= 1000 * int(lag[1])):
        yield "a master is replaced while it may still take writes"


@rule
def a_lost_answer_of_dns_stops_no_sentinel_for_two_seconds(pair):
    """A DNS lookup blocks a Sentinel. After a pause of two seconds, it does not act for thirty (TILT mode)."""
    for name in COPIES if settings(pair) else ():
        options = pair.workload(name)["spec"]["template"]["spec"].get("dnsConfig", {}).get("options", [])
        if {"name": "timeout", "value": "1"} not in options:
            yield f"{name} waits longer than a second for an answer of DNS"


@rule
def probes_of_redis_speak_tls(pair):
    """A server logs a failed handshake for each connection without TLS."""
    for name in COPIES if settings(pair) else ():
        for container in pair.workload(name)["spec"]["template"]["spec"]["containers"]:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if container.get("ports") and "exec" not in container[probe]:
                    yield f"{name}: {probe}"


@rule
def the_closed_default_user_keeps_its_rights(pair):
    for file in ("users.acl", "sentinels.acl"):
        text = (settings(pair) or {}).get(file)
        if text is not None and "user default off ~* &* +@all" not in text.splitlines():
            yield f"{file}: transactions are dropped when the append-only file is loaded (redis issue 14541)"
        for line in (text or "").splitlines():
            if line.startswith("user ") and "nopass" in line and not line.startswith("user probe "):
                yield f"{file}: {line}"


@rule
def redis_has_room_for_a_rewrite(pair):
    files = settings(pair)
    if files:
        container = pair.workload("redis")["spec"]["template"]["spec"]["containers"][0]
        limit = size(container["resources"]["limits"]["memory"])
        most, buffer = (size(re.search(pattern, files["redis.conf"], re.MULTILINE)[1]) for pattern in (r"^maxmemory (\w+)$", r"^client-output-buffer-limit replica (\w+) "))
        least = most * COPIES_OF_PAGES + buffer * (pair.workload("redis")["spec"]["replicas"] - 1)
        if limit < least:
            yield f"{limit / 1024**2:.0f} MiB for maxmemory {most / 1024**2:.0f}: {least / 1024**2:.0f} at least"


@rule
def servers_and_sentinels_are_named_as_their_pods_are(pair):
    if not settings(pair):
        return
    spec = {name: pair.workload(name)["spec"] for name in COPIES}
    names = {name: [f"{name}-{pod}.{name}:{port}" for pod in range(spec[name]["replicas"])] for name, port in COPIES.items()}
    services = {item["metadata"]["name"]: item["spec"] for item in pair.of("Service")}
    for name, port in COPIES.items():
        for container in spec[name]["template"]["spec"]["containers"]:
            told = {entry["name"]: entry.get("value") for entry in container["env"]}
            if told["SERVERS"].split() != names["redis"] or told["SENTINELS"].split() != names["redis-sentinel"] or told["SELF"] != f"$(POD_NAME).{name}:{port}":
                yield f"{name}/{container['name']}"
        if services[name].get("clusterIP") != "None" or not services[name].get("publishNotReadyAddresses") or spec[name]["serviceName"] != name:
            yield f"{name}: its pods have no names before they are ready"
        if spec[name].get("podManagementPolicy") != "Parallel":
            yield f"{name}: waits for a pod that may be gone"
    for certificate in pair.of("Certificate"):
        if certificate["metadata"]["name"] == "redis-tls":
            for address in (*names["redis"], *names["redis-sentinel"], "localhost:"):
                if address.split(":")[0] not in certificate["spec"]["dnsNames"]:
                    yield f"the certificate does not name {address}"
