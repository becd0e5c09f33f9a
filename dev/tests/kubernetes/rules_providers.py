"""Rules about providers: one or several, directly or through a forward proxy."""

import ipaddress
import os
import tomllib
import urllib.parse

from pair import matches, rule

SERVICES = ("edge", "session-svc")


def mounted(pair, name, path):
    """Returns the ConfigMap that provides a service's file."""
    workload = pair.workload(name)
    pod = workload["spec"]["template"]["spec"]
    (mount,) = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["mountPath"] == os.path.dirname(path)]
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == mount["name"]]
    return volume["configMap"]["name"], pair.config(volume["configMap"]["name"], workload["metadata"].get("namespace"))[os.path.basename(path)]


@rule
def both_services_have_the_same_providers(pair):
    settings = [{key: value for key, value in pair.settings(pair.workload(name)).items() if key.startswith("OIDC_")} for name in SERVICES]
    if settings[0] != settings[1]:
        yield "edge and session service have different providers"
    listed = settings[0].get("OIDC_PROVIDERS")
    if listed:
        if list(settings[0]) != ["OIDC_PROVIDERS"]:
            yield f"outside the list: {sorted(settings[0])}"
        found = {mounted(pair, name, listed) for name in SERVICES}
        if len(found) != 1:
            yield "the services have different lists"
        for name in SERVICES:
            folders = {mount["mountPath"] for mount in pair.workload(name)["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
            for table in tomllib.loads(min(found)[1])["provider"]:
                if os.path.dirname(table["client_secret_file"]) not in folders:
                    yield f"{name}: {table['client_secret_file']} is not mounted"


@rule
def behind_a_forward_proxy_nothing_goes_to_the_internet_itself(pair):
    for name in SERVICES:
        workload = pair.workload(name)
        proxy = pair.settings(workload).get("HTTPS_PROXY")
        if not proxy:
            continue
        labels = workload["spec"]["template"]["metadata"]["labels"]
        policies = [item["spec"] for item in pair.of("NetworkPolicy") if item["metadata"]["name"] == "allow-provider" and matches(item["spec"]["podSelector"], labels)]
        ways = [part for spec in policies for part in spec["egress"]]
        sizes = {ipaddress.ip_network(peer["ipBlock"]["cidr"]).num_addresses for part in ways for peer in part["to"]}
        if sizes != {1} or [port["port"] for part in ways for port in part["ports"]] != [urllib.parse.urlsplit(proxy).port]:
            yield f"{name}: {ways}"
        if ".svc" not in pair.settings(workload).get("NO_PROXY", "").split(","):
            yield f"{name}: the cluster's own services would be asked through the proxy"
