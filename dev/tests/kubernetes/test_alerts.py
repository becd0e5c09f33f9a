"""Alerts and dashboard: of metrics there are, raised when they should be and not otherwise (promtool), and each with its words."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from alert_cases import CASES

ROOT = pathlib.Path(__file__).resolve().parents[3]
MONITORING = ROOT / "k8s/components/monitoring"
RULES = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["spec"]
ALERTS = {entry["alert"]: entry for group in RULES["groups"] for entry in group["rules"]}
NOT_OURS = {"up", "certmanager_certificate_expiration_timestamp_seconds"}
WORDS = {"absent", "by", "count", "histogram_quantile", "increase", "le", "max", "rate", "sum", "time"}


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def expressions():
    for name, alert in ALERTS.items():
        yield name, alert["expr"]
    for panel in json.loads((MONITORING / "vestibule.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def metrics(expression):
    """The names an expression asks for: what stands before a brace or alone, and is no function or label."""
    bare = re.sub(r"\{[^}]*\}|\([\w, ]*\)(?= \()|\"[^\"]*\"|\[\w+\]", "", expression)
    return {re.sub(r"_(bucket|count|sum)$", "", name) if "duration" in name else name for name in re.findall(r"[a-z][a-z_]+", bare) if name not in WORDS}


def raised(name, series, minute, expected):
    question = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) > bool 0 or vector(0)'
    return {
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series],
        "promql_expr_test": [{"expr": question, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": int(expected)}]}],
    }


class Alerts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "rules.yaml").write_text(yaml.safe_dump(RULES))

    def ask(self, tests):
        (self.folder / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}))
        return promtool("test", "rules", self.folder / "tests.yaml")

    def test_prometheus_reads_the_rules_and_what_the_dashboard_asks(self):
        asked = [{"record": f"panel:{number}", "expr": expression.replace("$namespace", "vestibule")} for number, (_, expression) in enumerate(expressions())]
        (self.folder / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": asked}]}))
        for file in ("rules.yaml", "panels.yaml"):
            code, output = promtool("check", "rules", self.folder / file)
            self.assertEqual(code, 0, output)

    def test_each_alert_is_raised_when_it_should_be(self):
        self.assertEqual(set(CASES), set(ALERTS))
        for name, (loud, _, minute) in CASES.items():
            with self.subTest(alert=name):
                code, output = self.ask([raised(name, loud, minute, True)])
                self.assertEqual(code, 0, output)

    def test_no_alert_is_raised_by_what_is_usual(self):
        for name, (_, quiet, minute) in CASES.items():
            with self.subTest(alert=name):
                code, output = self.ask([raised(name, quiet, minute, False)])
                self.assertEqual(code, 0, output)

    def test_this_file_would_notice_a_rule_that_is_always_or_never_raised(self):
        for name, (loud, quiet, minute) in CASES.items():
            with self.subTest(alert=name):
                self.assertNotEqual(self.ask([raised(name, loud, minute, False)])[0], 0)
                self.assertNotEqual(self.ask([raised(name, quiet, minute, True)])[0], 0)

    def test_every_metric_is_one_the_programs_have(self):
        sources = "".join(path.read_text() for folder in ("auth-edge/src", "session-svc/src", "crates") for path in (ROOT / folder).rglob("*.rs"))
        for where, expression in expressions():
            self.assertTrue(metrics(expression), where)
            for name in metrics(expression) - NOT_OURS:
                self.assertIn(f'"{name}"', sources, where)

    def test_reasons_and_outcomes_are_those_the_programs_tell(self):
        told = (ROOT / "docs/sign-in-fails.md").read_text() + (ROOT / "docs/operating.md").read_text()
        for where, expression in expressions():
            for words in re.findall(r'(?:reason|outcome|result)=~?"([\w|]+)"', expression):
                for word in words.split("|"):
                    self.assertIn(f"`{word}`", told, where)

    def test_each_alert_says_what_people_notice_and_what_to_do(self):
        text = (ROOT / "docs/kubernetes/alerts.md").read_text()
        sections = dict(re.findall(r"^## (\w+)\n\n(.+?)(?=\n## |\Z)", text, re.M | re.S))
        self.assertEqual(list(sections), list(ALERTS))
        for name, words in sections.items():
            self.assertRegex(words, r"^\*\*People\*\*:? ", name)
            self.assertIn("\n**Do**", words, name)
            self.assertIn(ALERTS[name]["labels"]["severity"], ("critical", "warning"))
            self.assertTrue(ALERTS[name]["annotations"]["summary"])


if __name__ == "__main__":
    unittest.main()
