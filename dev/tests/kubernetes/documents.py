"""Finds links, anchors, and names of Kubernetes objects in documents that do not exist."""

import collections
import functools
import itertools
import pathlib
import re
import textwrap

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
OF_KUBERNETES = ROOT / "docs/kubernetes"
# Readers of docs/kubernetes/install.md create this folder.
OWN = re.compile(r"k8s/overlays/own\b")


def documents():
    return sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "k8s/README.md", ROOT / "k8s/chart/README.md", ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def without_blocks(text):
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.S | re.M)


def anchor(heading):
    """Returns a heading's anchor as GitHub forms it: lower case, no punctuation, hyphens for spaces."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower().replace("`", "")
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    """Yields the anchors of all headings. A repeated one gets a number."""
    found = collections.Counter()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*#*$", without_blocks(text), re.M):
        name = anchor(heading)
        yield f"{name}-{found[name]}" if found[name] else name
        found[name] += 1


def dead_links(path, text):
    """Yields a document's broken links."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_blocks(text))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, name = target.partition("#")
        to = path.parent / file if file else path
        if not to.exists() or (name and name not in set(anchors(to.read_text() if file else text))):
            yield target


def manifests(*suffixes):
    """Lists the files of base, components and overlays. The chart has templates instead."""
    return [path for folder in ("base", "components", "overlays") for path in sorted((ROOT / "k8s" / folder).rglob("*")) if path.suffix in suffixes]


@functools.cache
def known():
    """Collects the names in manifests and settings."""
    files = manifests(".yaml", ".env", ".toml")
    text = "\n".join(path.read_text() for path in files)
    items = [item for path in files if path.suffix == ".yaml" for item in yaml.safe_load_all(path.read_text()) if isinstance(item, dict)]
    return {
        "setting": set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", (ROOT / "docs/settings.md").read_text() + text)),
        "secret": set(re.findall(r"secretName: ([\w-]+)", text)),
        "workload": {item["metadata"]["name"] for item in items if item.get("kind") in ("Deployment", "StatefulSet", "CronJob")},
    }


def sizes():
    """Yields each long-running workload with the memory of its containers and its disks."""
    apart = lambda size: re.sub(r"(\d)([MG]i)", r"\1 \2", size)
    for path in manifests(".yaml"):
        for item in yaml.safe_load_all(path.read_text()):
            if not isinstance(item, dict) or item.get("kind") not in ("Deployment", "StatefulSet") or {"dev-idp", "examples"} & set(path.parts):
                continue
            containers = item.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
            disks = [apart(claim["spec"]["resources"]["requests"]["storage"]) for claim in item["spec"].get("volumeClaimTemplates", [])]
            yield item["metadata"]["name"], [apart(part["resources"]["limits"]["memory"]) for part in containers], disks


def components():
    return {str(path.parent.relative_to(ROOT / "k8s/components")) for path in (ROOT / "k8s/components").rglob("kustomization.yaml")}


def paths_that_are_not_there(text):
    scripts = [f"k8s/components/redis/scripts/{name}" for name in re.findall(r"/etc/redis/scripts/([\w.-]+)", text)]
    for found in [*re.findall(r"(?<![\w/.])k8s/[\w./-]+", text), *scripts]:
        path = found.rstrip("./")
        if not OWN.match(path) and not (ROOT / path).exists() and path != "k8s/overlays/dev/secrets":
            yield path


def settings_that_nobody_reads(text):
    names = re.findall(r"\b(?:EDGE|SESSION|OIDC|OPERATOR|OTEL)_[A-Z_]+\b", text)
    yield from sorted(set(names) - known()["setting"])


def secrets_that_nobody_mounts(text):
    patterns = [r"\bSecrets? `([\w-]+)`", r"create secret (?:generic|tls) ([\w-]+)", r"^secret ([\w-]+)", r"(?:get|delete|patch) secret ([\w-]+)"]
    names = set(itertools.chain.from_iterable(re.findall(pattern, text, re.M) for pattern in patterns))
    for _, block in shell(text):
        names |= set(re.findall(r"\b(?:put|get) ([a-z][\w-]+) [a-z]+-?[a-z]+\b", block))  # the functions of rotation.md
    yield from sorted(names - known()["secret"])


def workloads_that_are_not_there(text):
    names = re.findall(r"\b(?:deploy(?:ment)?|statefulset|cronjob)/([a-z][\w-]*)", text)
    yield from sorted(set(names) - known()["workload"])


def logs_of_some_pods(text):
    """Yields `kubectl logs` that omits pods (`deploy/NAME` reads one) or lines (`-l` without `--tail` prints ten)."""
    for command in re.findall(r"\bkubectl\b[^`\n|]* logs [^`\n|]*", text):
        command = command.strip()
        reads_workload = re.search(r" logs .*\b(?:deploy(?:ments?)?|sts|statefulsets?|daemonset)/", command)
        reads_label = re.search(r" (?:-l|--selector)\b", command)
        if reads_workload or (reads_label and not ("--tail=" in command and "--prefix" in command)):
            yield command


def components_that_are_not_there(text):
    """Yields unknown components: in backticks after the word, or in the first column of their table."""
    names = set(re.findall(r"\bcomponents? \[?`([\w/-]+)`", text))
    for row in re.findall(r"^\| ((?:`[\w/…-]+`(?:, )?)+) \|", text.partition("## What an overlay takes")[2], re.M):
        names |= {name.removesuffix("/…") for name in re.findall(r"`([^`]+)`", row)}
    yield from sorted(name for name in names if name not in components() and not (ROOT / "k8s/components" / name).is_dir())


def shell(text):
    """Lists the blocks of shell commands."""
    return re.findall(r"^( *)```sh\n(.*?)^\1```$", text, re.S | re.M)


def blocks(text, language):
    """Lists the blocks of a language, without the indentation of a list."""
    return [textwrap.dedent(block) for _, block in re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.S | re.M)]


CHECKS = (paths_that_are_not_there, settings_that_nobody_reads, secrets_that_nobody_mounts, workloads_that_are_not_there, components_that_are_not_there)
