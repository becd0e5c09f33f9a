"""Recreates the settings and files of a pod's first container in a folder, with substitute secrets."""

import os
import pathlib
import re
import subprocess

from pair import pod_of

ROOT_FOLDER = "/etc/vestibule"
STORES = {
    "redis": "rediss-sentinel://session-svc:secret@redis-sentinel-0.redis-sentinel:26379,redis-sentinel-1.redis-sentinel:26379/sessions",
    "redis-external": "rediss://session-svc:secret@redis.example.com:6379/0",
    "redis-cluster": "rediss-cluster://session-svc:secret@redis-cluster-0.redis-cluster.redis.svc:6379",
}
CLIENT = "?ca_file={0}/redis/ca.crt&cert_file={0}/redis/tls.crt&key_file={0}/redis/tls.key".format(ROOT_FOLDER)


def certificate(folder):
    """Makes a self-signed certificate for all uses. The programs check only its form."""
    key, public = folder / "tls.key", folder / "tls.crt"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-addext", "subjectAltName=DNS:x", "-days", "1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(public)], check=True, capture_output=True)
    return {"tls.key": key.read_text(), "tls.crt": public.read_text(), "ca.crt": public.read_text()}


class Secrets:
    """The values in each Secret. A certificate stands for all others."""

    def __init__(self, folder, store):
        self.pem = certificate(folder)
        self.store = STORES[store] + CLIENT

    def keys(self, name):
        known = {
            "provider": {"client-secret": "provider-secret-0123456789", "staff": "provider-secret-0123456789", "partner": "provider-secret-9876543210"},
            "edge": {"edge-secret": "0f" * 32},
            "session-svc": {"encryption-key": "0e" * 32, "store": self.store},
        }
        return known.get(name, self.pem)


def mount(pair, workload, secrets, folder):
    """Writes the ConfigMaps and Secrets that the first container mounts below `folder`."""
    pod, space = pod_of(workload)["spec"], workload["metadata"].get("namespace")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for at in pod["containers"][0]["volumeMounts"]:
        volume = volumes[at["name"]]
        if "configMap" in volume:
            files = pair.config(volume["configMap"]["name"], space)
        elif "secret" in volume:
            files = secrets.keys(volume["secret"]["secretName"])
        else:
            continue
        source = volume.get("configMap") or volume["secret"]
        items = {entry["key"]: entry["path"] for entry in source.get("items", [])} or {key: key for key in files}
        target = pathlib.Path(moved(at["mountPath"], folder))
        target.mkdir(parents=True, exist_ok=True)
        for key, path in items.items():
            file = target / path
            file.write_text(moved(files[key], folder))
            file.chmod(source.get("defaultMode", 0o644))


def moved(text, folder):
    return text.replace(ROOT_FOLDER, str(folder))


def variables(pair, workload, folder, address):
    """Returns the first container's variables, with `address` as the pod's address."""
    values = pair.settings(workload)
    return {key: moved(re.sub(r"\$\(POD_IP\)", address, value), folder) for key, value in values.items()}


def check(program, values):
    """Runs `--check-config` and returns its exit code and output."""
    done = subprocess.run([program, "--check-config"], env={"PATH": os.environ["PATH"], **values}, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr
