"""Runs the Kustomize commands of docs/kubernetes/sizes.md with real kubectl and the API server of cluster.py."""

import os
import pathlib
import re
import subprocess
import unittest

import chart
import cluster
import matrix
import yaml

PAGE = matrix.ROOT / "docs/kubernetes/sizes.md"
LIVE = {"edge": 7, "session-svc": 5}


class SwitchedOn(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(cluster.running())
        folder = self.cluster.folder
        for name, components in (("without", ["mtls", "redis"]), ("with", ["mtls", "redis", "autoscaling"])):
            items = [item for item in matrix.render_pair(("base+redis", name), components) if item["metadata"]["name"] in LIVE and item["kind"] == "Deployment"]
            (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(items))
        programs = pathlib.Path(chart.program()).parents[1] / "kubectl"
        self.environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "KUBECONFIG": str(self.cluster.config)}
        self.run_commands("kubectl apply --validate=false -f without.yaml")
        for name, number in LIVE.items():
            self.cluster.cluster.of("deployments")[name]["spec"]["replicas"] = number

    def run_commands(self, commands):
        done = subprocess.run(["bash", "-eu", "-o", "pipefail"], input=commands, cwd=self.cluster.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def replicas(self):
        return {name: item["spec"]["replicas"] for name, item in self.cluster.cluster.of("deployments").items()}

    def test_the_commands_of_the_page_keep_the_live_numbers(self):
        (block,) = [block for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.S) if "set-last-applied" in block]
        self.assertIn("kubectl apply -k k8s/overlays/own", block)
        self.run_commands(block.replace("kubectl apply -k k8s/overlays/own", "kubectl apply --validate=false -f with.yaml"))
        self.assertEqual(self.replicas(), LIVE)
        self.run_commands("kubectl apply --validate=false -f with.yaml")
        self.assertEqual(self.replicas(), LIVE)

    def test_without_them_one_pod_of_each_is_left(self):
        self.run_commands("kubectl apply --validate=false -f with.yaml")
        self.assertEqual(self.replicas(), {"edge": 1, "session-svc": 1})


if __name__ == "__main__":
    unittest.main()
