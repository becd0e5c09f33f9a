"""An API server that stores objects and runs nothing. helm can install, upgrade, roll back and look up objects."""

import contextlib
import copy
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import chart
import cluster_records
import schema
import yaml

# Kinds that the chart and its tests create, by group and version, with the plural for the path.
KINDS = {
    "v1": {"Pod": "pods", "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "ServiceAccount": "serviceaccounts", "Namespace": "namespaces"},
    "apps/v1": {"Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets"},
    "batch/v1": {"CronJob": "cronjobs", "Job": "jobs"},
    "autoscaling/v2": {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"},
    "gateway.networking.k8s.io/v1": {"HTTPRoute": "httproutes", "BackendTLSPolicy": "backendtlspolicies"},
    "gateway.networking.k8s.io/v1beta1": {"ReferenceGrant": "referencegrants"},
    "external-secrets.io/v1": {"ExternalSecret": "externalsecrets"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
    "monitoring.coreos.com/v1": {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"},
    "cert-manager.io/v1": {"Certificate": "certificates", "Issuer": "issuers"},
}
# Announces that the server validates pods. Otherwise helm needs their whole schema before it creates test pods.
VALIDATED = {"x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "Pod"}, "parameters": [{"name": "fieldValidation", "in": "query"}], "responses": {}}
OPENAPI = {
    "/openapi/v3": {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}},
    "/openapi/v3/api/v1": {"openapi": "3.0.0", "info": {"title": "pods", "version": "v1"}, "paths": {"/api/v1/namespaces/{namespace}/pods/{name}": {"patch": VALIDATED}}},
}
VERBS = ["create", "delete", "get", "list", "patch", "update"]


class Cluster:
    """The objects of one cluster. `refuses` returns the reason to reject an object; `ends`, a pod's final phase."""

    def __init__(self, version):
        self.objects, self.version = {}, version
        self.refuses = lambda item: None
        self.ends = lambda pod: "Succeeded"

    def of(self, resource):
        return {path.rsplit("/", 1)[1]: item for path, item in self.objects.items() if f"/{resource}/" in path}

    def run_pods(self, *states):
        """Replaces the pods: one for each workload of now and of earlier `states`."""
        for path in [path for path in self.objects if "/pods/" in path]:
            del self.objects[path]
        now = {kind: self.of(kind) for kind in ("deployments", "statefulsets")}
        for number, state in enumerate([*states, now]):
            for workload in [item for items in state.values() for item in items.values()]:
                name, space = f"{workload['metadata']['name']}-{number}", workload["metadata"]["namespace"]
                self.objects[f"/api/v1/namespaces/{space}/pods/{name}"] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": space}, "spec": workload["spec"]["template"]["spec"]}
        return copy.deepcopy(now)

    def discovery(self, path):
        groups = {}
        for version in KINDS:
            if "/" in version:
                groups.setdefault(version.split("/")[0], []).append({"groupVersion": version, "version": version.split("/")[1]})
        if path == "/version":
            return {"major": "1", "minor": self.version[2:], "gitVersion": f"v{self.version}.0"}
        if path in OPENAPI:
            return OPENAPI[path]
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": name, "versions": versions, "preferredVersion": versions[0]} for name, versions in groups.items()]}
        version = path.removeprefix("/apis/").removeprefix("/api/")
        if version in KINDS:
            resources = [{"name": plural, "singularName": kind.lower(), "namespaced": kind != "Namespace", "kind": kind, "verbs": VERBS} for kind, plural in KINDS[version].items()]
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}
        return None

    def listed(self, path, query):
        wanted = dict(part.split("=", 1) for part in query.get("labelSelector", [""])[0].split(",") if "=" in part)
        found = [item for name, item in self.objects.items() if name.rsplit("/", 1)[0] == path and wanted.items() <= item["metadata"].get("labels", {}).items()]
        kinds = {plural: kind for kinds in KINDS.values() for kind, plural in kinds.items()}
        version = "/".join(path.split("/")[2 : 3 if path.startswith("/api/") else 4])
        return {"apiVersion": version, "kind": f"{kinds[path.rsplit('/', 1)[1]]}List", "metadata": {"resourceVersion": "1"}, "items": found}

    def answer(self, method, path, query, body):
        """Returns status and body of the answer. Apply replaces the whole object: fields have no owners here."""
        before = self.objects.get(path)
        if "watch" in query:
            return 200, None  # the watch ends at once: objects change only by requests
        if method == "GET":
            known = self.discovery(path) or before or (path.rsplit("/", 1)[1] in {plural for kinds in KINDS.values() for plural in kinds.values()} and self.listed(path, query))
            return (200, known) if known else failure(404, "NotFound", path)
        if method == "DELETE":
            return (200, self.objects.pop(path)) if before else failure(404, "NotFound", path)
        if method == "PATCH" and before and "clientSide" in query:
            body = merged(before, body)
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return failure(409, "AlreadyExists", path)
        why = self.refuses(body)
        if not why and before and before.get("immutable") and before["data"] != body["data"]:
            why = "field is immutable when `immutable` is set"
        if why:
            return failure(422, "Invalid", f"{path}: {why}")
        if body["kind"] == "Deployment":
            body["spec"].setdefault("replicas", 1)
        self.objects[path] = {**body, "metadata": {**body["metadata"], "uid": path, "resourceVersion": "1", "generation": 1}, **status_of(body, self.ends)}
        return 200, self.objects[path]


def merged(before, patch):
    """Applies a merge patch from kubectl (RFC 7396) to an object."""
    if not isinstance(before, dict) or not isinstance(patch, dict):
        return patch
    together = {**before, **{key: merged(before.get(key), value) for key, value in patch.items()}}
    return {key: value for key, value in together.items() if value is not None}


def status_of(item, ends):
    """Returns a status in which workloads are ready and pods have ended."""
    if item["kind"] == "Pod":
        return {"status": {"phase": ends(item)}}
    if item["kind"] not in ("Deployment", "StatefulSet"):
        return {}
    counts = {name: item["spec"]["replicas"] for name in ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "currentReplicas")}
    conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]
    return {"status": {"observedGeneration": 1, **counts, "conditions": conditions}}


def failure(code, reason, message):
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}


def read(text):
    if text.startswith(cluster_records.MAGIC):
        # Other protobuf bodies hold the options of a DELETE.
        return cluster_records.secret(text) if b"\x06Secret" in text else None
    return yaml.load(text, Loader=chart.matrix.Loader) if text else None


def handler(cluster):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body in one packet

        def serve(self):
            url = urllib.parse.urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("content-length", 0)))
            query = urllib.parse.parse_qs(url.query)
            if "merge-patch" in self.headers.get("content-type", ""):
                query["clientSide"] = ["true"]
            status, body = cluster.answer(self.command, url.path, query, read(text))
            answer = json.dumps(body).encode() if body else b""
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

        def log_message(self, *_):
            pass

    return Handler


class Helm:
    """helm and kubectl with a cluster of their own."""

    def __init__(self, cluster, folder, address):
        self.cluster, self.folder = cluster, pathlib.Path(folder)
        self.config = self.folder / "kubeconfig"
        context = {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "vestibule"}}
        fields = {"clusters": [{"name": "test", "cluster": {"server": address}}], "users": [{"name": "test", "user": {}}], "contexts": [context], "current-context": "test"}
        self.config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **fields}))

    def call(self, *command, given=None):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "KUBECONFIG": str(self.config)}
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=600, env=environment)

    def run(self, *arguments):
        return self.call(chart.program(), *arguments, "--qps", "1000", "--burst-limit", "1000")

    def kubectl(self, *arguments, given):
        helm = pathlib.Path(chart.program())
        return self.call(str(helm.parents[1] / "kubectl/kubectl") if helm.is_absolute() else "kubectl", *arguments, given=given)

    def apply(self, verb, values, *more, release="vestibule"):
        file = self.folder / "values.json"
        file.write_text(json.dumps(values))
        return self.run(verb, release, str(chart.CHART), "--namespace", "vestibule", "--values", str(file), "--disable-openapi-validation", *more)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # helm closes connections without notice
            super().handle_error(request, client_address)


@contextlib.contextmanager
def running(version=schema.VERSIONS[-1]):
    """Starts a cluster of a Kubernetes version for one test, and yields it with helm."""
    cluster = Cluster(version)
    server = Server(("127.0.0.1", 0), handler(cluster))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield Helm(cluster, folder, f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
