"""The alert rules of the role prometheus: each fires on its fault, none on healthy series. promtool evaluates them."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.edges.resources import resource
from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.kernel_log.nvidia_codes import xid_table
from lab.tests.lab_kit import eventually
from scripts.grafana_boards import BOARDS
from tests.edges.ansible.role_cases import load, options
from tests.edges.ansible.support import DATA
from tests.edges.ansible.test_dashboards import busy_site
from tests.paths import ROOT
from tests.ports import reserve_port

RULES = resource("roles") / "prometheus/files/rules"
FILES = sorted(RULES.glob("*.yml"))
CASES = yaml.safe_load((DATA / "alert_rules.yml").read_text())
SCRAPES = sorted((DATA / "scrapes").glob("*.prom"))
OF_EACH_HOST = {
    "node_cpu_seconds_total", "node_filesystem_avail_bytes", "node_filesystem_size_bytes", "node_memory_MemAvailable_bytes",
    "node_memory_MemTotal_bytes", "node_network_carrier_changes_total", "node_network_receive_errs_total",
    "node_network_transmit_errs_total", "node_timex_offset_seconds", "node_timex_sync_status",
}  # fmt: skip
"""What needs no special hardware."""
PAGE = "docs/how-to/monitoring.md"
CHANGE = re.compile(r"increase\(|rate\(|predict_linear\(")
"""An alert of such an expression is about a change: it ends when the change does."""
with_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def alerts() -> dict[str, dict[str, Any]]:
    """Return the alert rules by name."""
    rules = [rule for file in FILES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
    return {rule["alert"]: rule for rule in rules if "alert" in rule}


def promtool(*argv: str) -> None:
    result = subprocess.run(["promtool", *argv], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def series(case: dict[str, Any]) -> list[dict[str, str]]:
    """Return the case's series. Where it has none of clusterctl's clock, a healthy site exports in addition."""
    found = dict(case["series"])
    if case.get("alert") not in {"ClusterctlMetricsOld", "ClusterctlMetricsMissing"}:
        found['clusterctl_metrics_timestamp_seconds{instance="c:9100"}'] = (
            "0+300x4100" if case.get("coarse") else "0+60x1700"
        )
    return [{"series": name, "values": values} for name, values in found.items()]


def silent(at: str) -> list[dict[str, Any]]:
    return [{"eval_time": at, "alertname": name, "exp_alerts": []} for name in alerts()]


def firing(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what promtool has to find: nothing at `quiet`, this alert at `at`."""
    rule = alerts()[case["alert"]]
    labels = {"severity": rule["labels"]["severity"], **case["labels"]}
    annotations = {"summary": case["summary"], "runbook": rule["annotations"]["runbook"]}
    found = {"exp_labels": labels, "exp_annotations": annotations}
    return [
        {"eval_time": case["quiet"], "alertname": case["alert"], "exp_alerts": []},
        {"eval_time": case["at"], "alertname": case["alert"], "exp_alerts": [found]},
    ]


def evaluate(folder: Path, tests: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    """Let promtool evaluate cases with what is expected of each. It stops at no failure and prints each."""
    for coarse, interval, evaluation in ((False, "1m", "1m"), (True, "5m", "30m")):
        chosen = [(case, expected) for case, expected in tests if bool(case.get("coarse")) is coarse]
        found = [
            {"interval": interval, "input_series": series(case), "alert_rule_test": expected}
            for case, expected in chosen
        ]
        run_tests(folder, evaluation, found)


def run_tests(folder: Path, evaluation: str, tests: list[dict[str, Any]]) -> None:
    document = {"rule_files": [str(file) for file in FILES], "evaluation_interval": evaluation, "tests": tests}
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True))
    promtool("test", "rules", str(file))


@with_promtool
def test_promtool_accepts_the_rules() -> None:
    assert FILES
    promtool("check", "rules", *map(str, FILES))


@with_promtool
def test_each_alert_fires_on_its_fault_and_not_before(tmp_path: Path) -> None:
    evaluate(tmp_path, [(case, firing(case)) for case in CASES["faults"]])


@with_promtool
def test_each_alert_of_a_state_still_fires_half_a_day_later(tmp_path: Path) -> None:
    """As long as the fault is there: neither time nor a series that vanished ends the alert. Changes end by themselves."""
    cases = [case for case in CASES["faults"] if not CHANGE.search(alerts()[case["alert"]]["expr"])]
    assert len({case["alert"] for case in cases}) >= 20
    tests = []
    for case in cases:
        coarse = bool(case.get("coarse"))
        name, later = case["alert"], "20d" if coarse else "12h"
        query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
        value = {"expr": query, "eval_time": later, "exp_samples": [{"labels": "{}", "value": 1}]}
        samples = [{**one, "values": goes_on(one["values"], 5800 if coarse else 750)} for one in series(case)]
        tests.append((coarse, {"input_series": samples, "promql_expr_test": [value]}))
    for coarse, interval, evaluation in ((False, "1m", "30m"), (True, "5m", "2h")):
        found = [{"interval": interval, **test} for chosen, test in tests if chosen is coarse]
        run_tests(tmp_path, evaluation, found)


def goes_on(values: str, samples: int) -> str:
    """Return a series that goes on as it ends, for long enough: with its last value, its growth, or nothing."""
    return re.sub(r"x\d+$", f"x{samples}", values.strip())


@with_promtool
def test_no_alert_fires_on_healthy_series(tmp_path: Path) -> None:
    """Series of a healthy fleet, and recorded ones: each at several times, and each alert."""
    tests = [(case, [one for at in case["at"] for one in silent(at)]) for case in CASES["healthy"]]
    assert len(tests) >= 6
    evaluate(tmp_path, tests)


@with_promtool
def test_promtool_finds_a_rule_that_does_not_fire(tmp_path: Path) -> None:
    """What is expected is compared: with a healthy series the same expectation fails, with the alert's name."""
    (xid,) = [case for case in CASES["faults"] if case["alert"] == "GpuXid"]
    healthy = {**xid, "series": dict.fromkeys(xid["series"], "0+0x20")}
    with pytest.raises(AssertionError, match="alertname: GpuXid"):
        evaluate(tmp_path, [(healthy, firing(xid))])


def test_each_alert_has_a_fault_that_it_fires_on() -> None:
    assert {case["alert"] for case in CASES["faults"]} == set(alerts())


def test_each_alert_has_a_severity_and_a_place_in_the_documentation() -> None:
    """Its runbook is a heading of the page, which has no other alerts."""
    rules = alerts()
    assert {rule["labels"]["severity"] for rule in rules.values()} == {"critical", "warning"}
    assert {name: rule["annotations"]["runbook"] for name, rule in rules.items()} == {
        name: f"{PAGE}#{name.lower()}" for name in rules
    }
    section = (ROOT / PAGE).read_text().partition("\n## Alerts\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^#### (\w+)$", section, re.MULTILINE)) == sorted(rules)


def test_an_xid_alert_leaves_out_what_the_table_takes_for_harmless() -> None:
    """The burn-in and the monitoring judge an Xid alike; a code that the table does not know is an alert."""
    left_out = {
        int(code) for part in re.findall(r'"([0-9|]+)"', alerts()["GpuXid"]["expr"]) for code in part.split("|")
    }
    assert left_out == {0} | {code for code, row in xid_table().items() if row.action.verdict is Verdict.WARN}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:node|ipmi|DCGM_FI|clusterctl)_\w+", text)) - {"node_exporter"}


def test_each_metric_of_a_rule_and_a_panel_is_one_of_an_exporter() -> None:
    """It is in a scrape that was recorded or published, or clusterctl exports it: a wrong name would be silent for ever."""
    found = {line.partition("{")[0].partition(" ")[0] for file in SCRAPES for line in file.read_text().splitlines()}
    own = {line.split()[2] for line in busy_site().splitlines() if line.startswith("# HELP")}
    used = set().union(*(names_in(rule["expr"]) for rule in alerts().values()))
    for board in BOARDS:
        used |= {name for panel in board.panels for query, _ in panel.queries for name in names_in(query)}
    assert len(used) >= 60
    written_by_nodes = {"clusterctl_drain_held"}
    assert used - found - own - OF_EACH_HOST - written_by_nodes == set()


OF_TARGETS = {"instance", "job", "node", "rack", "unit", "sku"}
OF_SOME_GPUS = {"GPU_I_ID", "GPU_I_PROFILE", "pod"}
"""What dcgm-exporter adds for parts of a GPU and on Kubernetes
(https://github.com/NVIDIA/dcgm-exporter, internal/pkg/rendermetrics).
"""


def test_each_fault_has_the_labels_of_a_scrape() -> None:
    """A rule that is tested on labels that no exporter writes would be silent on a site."""
    known: dict[str, set[str]] = {}
    for text in (*(file.read_text() for file in SCRAPES), busy_site()):
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels = line.partition("{")[0].partition(" ")[0], re.findall(r'(\w+)="', line)
                known.setdefault(name, set()).update(labels)
    used = [one for case in (*CASES["faults"], *CASES["healthy"]) for one in case["series"]]
    compared = {one: known[one.partition("{")[0]] for one in used if one.partition("{")[0] in known}
    assert len(compared) >= 60
    wrong = {
        one: extra
        for one, labels in compared.items()
        if (extra := {*re.findall(r'(\w+)="', one)} - labels - OF_TARGETS - OF_SOME_GPUS)
    }
    assert wrong == {}


@pytest.mark.skipif(shutil.which("prometheus-node-exporter") is None, reason="node_exporter is not installed")
def test_the_host_s_metrics_are_those_of_the_installed_exporter() -> None:
    """What needs no special hardware is in a scrape of the distribution's own node_exporter."""
    port = reserve_port("127.0.0.1")
    argv = ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as exporter:
        try:
            found: list[str] = []

            def scraped() -> bool:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=600) as answer:
                        found.append(answer.read().decode())
                except OSError:
                    return False
                return True

            assert eventually(scraped, 600.0)
        finally:
            exporter.kill()
    names = {line.partition("{")[0].partition(" ")[0] for line in found[0].splitlines()}
    assert names >= OF_EACH_HOST


def test_the_rules_use_counters_that_the_exporter_is_asked_for() -> None:
    """DCGM's fields are those of the role dcgm_exporter, and the role copies each file of rules."""
    used = set(re.findall(r"DCGM_FI_\w+", (RULES / "gpus.yml").read_text()))
    asked = {one["field"] for one in options("dcgm_exporter")["dcgm_exporter_counters"]["default"]}
    assert used - asked == set()
    assert sorted(load("prometheus", "vars/main.yml")["__prometheus_rules"]) == [file.stem for file in FILES]
