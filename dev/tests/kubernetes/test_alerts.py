"""Tests alerts and dashboard: their metrics exist, promtool raises each alert correctly, and each has a text."""

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
RUNBOOKS = dict(re.findall(r"^## (\w+)\n\n(.+?)(?=\n## |\Z)", (ROOT / "docs/runbooks.md").read_text(), re.M | re.S))
RULES = {"groups": [group for file in ("alerts.yaml", "objectives.yaml") for group in yaml.safe_load((MONITORING / file).read_text())["spec"]["groups"]]}
ALL_RULES = [entry for group in RULES["groups"] for entry in group["rules"]]
ALERTS = {entry["alert"]: entry for entry in ALL_RULES if "alert" in entry}
RECORDED = {entry["record"]: entry["expr"] for entry in ALL_RULES if "record" in entry}
METRICS = {metric["name"]: metric for metric in yaml.safe_load((ROOT / "dev/monitoring/metrics.yaml").read_text())["metrics"]}
NOT_OURS = {"up", "certmanager_certificate_expiration_timestamp_seconds"}
WORDS = {"absent", "and", "by", "clamp_min", "count", "histogram_quantile", "increase", "le", "max", "min", "namespace", "on", "or", "rate", "sum", "time"}


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


def expressions():
    for name, alert in ALERTS.items():
        yield name, alert["expr"]
    for panel in json.loads((MONITORING / "vestibule.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    yield from RECORDED.items()


def metrics(expression):
    """Returns the names of the metrics and rules in an expression."""
    bare = re.sub(r"\{[^}]*\}|\([\w, ]*\)(?= \()|\"[^\"]*\"|\[\w+\]", "", expression)
    names = {name for name in re.findall(r"[a-z][a-z0-9_:]+", bare) if name not in WORDS}
    return {re.sub(r"_(bucket|count|sum)$", "", name) if "duration" in name else name for name in names}


def needed(name):
    """Returns the rule of an alert and the recording rules that it uses."""
    asked = {name} | metrics(ALERTS[name]["expr"])
    groups = [{**group, "rules": [rule for rule in group["rules"] if rule.get("alert", rule.get("record")) in asked]} for group in RULES["groups"]]
    return {"groups": [group for group in groups if group["rules"]]}


def step(minute):
    return "1m" if minute < 24 * 60 else "10m"


def raised(name, series, minute, expected):
    question = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) > bool 0 or vector(0)'
    return {
        "interval": step(minute),
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
        rules = needed(re.search(r'alertname="(\w+)"', str(tests)).group(1))
        (self.folder / "one.yaml").write_text(yaml.safe_dump(rules))
        (self.folder / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["one.yaml"], "evaluation_interval": tests[0]["interval"], "group_eval_order": [group["name"] for group in rules["groups"]], "tests": tests}))
        return promtool("test", "rules", self.folder / "tests.yaml")

    def test_prometheus_reads_the_rules_and_what_the_dashboard_asks(self):
        asked = [{"record": f"panel:{number}", "expr": expression.replace("$namespace", "vestibule")} for number, (_, expression) in enumerate(expressions())]
        (self.folder / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": asked}]}))
        for file in ("rules.yaml", "panels.yaml"):
            code, output = promtool("check", "rules", self.folder / file)
            self.assertEqual(code, 0, output)

    def test_each_alert_is_raised_when_it_should_be_and_by_nothing_usual(self):
        self.assertEqual(set(CASES), set(ALERTS))
        for name, (loud, quiet, minute) in CASES.items():
            with self.subTest(alert=name):
                code, output = self.ask([raised(name, loud, minute, True), raised(name, quiet, minute, False)])
                self.assertEqual(code, 0, output)

    def test_this_file_would_notice_a_rule_that_is_always_or_never_raised(self):
        name, (loud, quiet, minute) = next(iter(CASES.items()))
        self.assertNotEqual(self.ask([raised(name, loud, minute, False)])[0], 0)
        self.assertNotEqual(self.ask([raised(name, quiet, minute, True)])[0], 0)

    def test_every_metric_is_one_the_programs_have_or_the_rules_record(self):
        for where, expression in expressions():
            self.assertTrue(metrics(expression), where)
            for name in metrics(expression) - NOT_OURS:
                self.assertIn(name, METRICS.keys() | RECORDED.keys(), where)

    def test_every_metric_is_shown_by_a_panel(self):
        shown = set().union(*(metrics(expression) for _, expression in expressions()))
        self.assertEqual(METRICS.keys() - shown, set())

    def test_labels_and_their_values_are_those_the_programs_tell(self):
        reasons = (ROOT / "docs/sign-in-fails.md").read_text()
        for where, expression in expressions():
            for name, matchers in re.findall(r"([a-z][a-z0-9_]+)\{([^}]*)\}", expression):
                metric = METRICS.get(re.sub(r"_(bucket|count|sum)$", "", name), METRICS.get(name))
                for label, word in re.findall(r'(\w+)=~?"([\w|]+)"', matchers) if metric else []:
                    if label in ("job", "namespace", "le"):
                        continue
                    values = metric["labels"][label]
                    for value in word.split("|"):
                        if label == "reason":
                            self.assertIn(f"`{value}`", reasons, where)
                        elif isinstance(values, list):
                            self.assertIn(value, values, where)

    def test_each_alert_has_a_runbook_and_each_runbook_an_alert(self):
        self.assertEqual(set(RUNBOOKS), set(ALERTS))
        for name, alert in ALERTS.items():
            with self.subTest(alert=name):
                self.assertIn(alert["labels"]["severity"], ("critical", "warning"))
                annotations = alert["annotations"]
                self.assertEqual(set(annotations), {"summary", "description", "runbook_url"})
                self.assertTrue(all(annotations.values()))
                self.assertTrue(annotations["runbook_url"].endswith(f"/docs/runbooks.md#{name.lower()}"))

    def test_a_runbook_says_what_users_notice_what_to_check_and_what_to_do(self):
        for name, text in RUNBOOKS.items():
            with self.subTest(alert=name):
                self.assertRegex(text, r"^\*\*Users\*\* .+\n(.+\n)?\n(- .*[Cc]heck .+\n)(- .+\n)*(- \*\*Do:\*\* .+\n?)+$")

    def test_runbooks_name_panels_and_commands_that_exist(self):
        panels = {panel["title"] for panel in json.loads((MONITORING / "vestibule.json").read_text())["panels"]}
        sources = {"auth-edge": "auth-edge/src", "session-svc": "session-svc/src"}
        named = r'(?:Command::new\(|ReportTool<\w+> = ReportTool \{\s+name: )"([a-z-]+)"'
        commands = {program: set(re.findall(named, "".join(path.read_text() for path in (ROOT / folder).rglob("*.rs")))) for program, folder in sources.items()}
        anchors = {name.lower() for name in RUNBOOKS}
        for name, text in RUNBOOKS.items():
            with self.subTest(alert=name):
                for panel in re.findall(r"\*([A-Z][^*]+)\*", re.sub(r"\*\*.+?\*\*", "", text)):
                    self.assertTrue(any(title.startswith(panel) for title in panels), panel)
                for program, command in re.findall(r"-- /([a-z-]+) ([a-z-]+)", text):
                    self.assertIn(command, commands[program])
                for metric in re.findall(r"`[^`]*?([a-z_]+)\{", text):
                    self.assertIn(re.sub(r"_(bucket|count|sum)$", "", metric), METRICS)
                for other in re.findall(r"\]\(#(\w+)\)", text):
                    self.assertIn(other, anchors)


if __name__ == "__main__":
    unittest.main()
