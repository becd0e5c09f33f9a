"""Tests that links and names in documents exist, and that each check detects an error."""

import re
import subprocess
import unittest

import documents

WRONG = {
    documents.paths_that_are_not_there: "take `k8s/components/tea`, not k8s/components/redis",
    documents.settings_that_nobody_reads: "set EDGE_TEA beside EDGE_BASE_URL",
    documents.secrets_that_nobody_mounts: "the Secret `tea`, and\nkubectl create secret generic edge",
    documents.workloads_that_are_not_there: "kubectl rollout status deploy/tea, deploy/edge",
    documents.components_that_are_not_there: "the component `tea`, or the component `redis`",
}


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for path in documents.documents():
            with self.subTest(document=str(path.relative_to(documents.ROOT))):
                self.assertEqual(list(documents.dead_links(path, path.read_text())), [])

    def test_dead_links_are_noticed(self):
        path = documents.ROOT / "docs/kubernetes/README.md"
        text = "[a](tea.md) [b](#tea) [c](../operating.md#tea) [d](../operating.md#stores) [e](https://example.org/tea) `[f](tea.md)`"
        self.assertEqual(list(documents.dead_links(path, text)), ["tea.md", "#tea", "../operating.md#tea"])

    def test_logs_are_read_from_every_pod(self):
        for path in documents.documents():
            with self.subTest(document=str(path.relative_to(documents.ROOT))):
                self.assertEqual(list(documents.logs_of_some_pods(path.read_text())), [])

    def test_logs_of_some_pods_are_noticed(self):
        wrong = [
            "kubectl -n vestibule logs deploy/edge",
            "kubectl logs -f deployment/session-svc --tail=-1 --prefix",
            "kubectl logs statefulset/redis -c redis",
            "kubectl logs -l app.kubernetes.io/name=edge --prefix",
            "kubectl logs --selector app.kubernetes.io/name=edge --tail=-1",
        ]
        right = ["kubectl logs -l app.kubernetes.io/name=edge --tail=-1 --prefix", "kubectl logs job/look", "kubectl logs redis-0 -c redis"]
        text = "\n".join([*(f"`{command}`: see" for command in right), *(f"{command} | grep REQUEST-ID" for command in wrong)])
        self.assertEqual(list(documents.logs_of_some_pods(text)), wrong)

    def test_what_the_documents_name_is_there(self):
        for path in sorted(documents.OF_KUBERNETES.glob("*.md")):
            for check in documents.CHECKS:
                with self.subTest(document=path.name, check=check.__name__):
                    self.assertEqual(list(check(path.read_text())), [])

    def test_each_check_notices_what_is_not_there(self):
        self.assertEqual(set(WRONG), set(documents.CHECKS))
        for check, text in WRONG.items():
            with self.subTest(check=check.__name__):
                found = list(check(text))
                self.assertEqual(len(found), 1, found)
                self.assertIn("tea", found[0].lower())

    def test_every_component_is_in_the_table(self):
        table = (documents.OF_KUBERNETES / "README.md").read_text().partition("## What an overlay takes")[2]
        for name in documents.components():
            with self.subTest(component=name):
                self.assertIn(f"`{name.split('/')[0]}", table)

    def test_every_page_is_in_the_index(self):
        index = (documents.OF_KUBERNETES / "README.md").read_text()
        for path in documents.OF_KUBERNETES.glob("*.md"):
            with self.subTest(page=path.name):
                self.assertTrue(path.name == "README.md" or f"]({path.name})" in index)

    def test_sizes_are_those_of_the_manifests(self):
        text = (documents.OF_KUBERNETES / "sizes.md").read_text()
        told = {name: row for name, row in re.findall(r"^\| `([\w-]+)` \| (.*) \|$", text, re.M)}
        for workload, memory, disk in documents.sizes():
            with self.subTest(workload=workload):
                row = told[workload].split(" | ")
                self.assertEqual(re.findall(r"\d+ [MG]i", row[1]), memory)
                self.assertEqual(re.findall(r"\d+ [MG]i", row[3]), disk)
        self.assertEqual(set(told), {workload for workload, _, _ in documents.sizes()})

    def test_commands_are_commands(self):
        for path in documents.OF_KUBERNETES.glob("*.md"):
            for _, block in documents.shell(path.read_text()):
                with self.subTest(document=path.name, block=block.partition("\n")[0]):
                    done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False, timeout=600)
                    self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
