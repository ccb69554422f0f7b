"""A real Prometheus with the shipped rules scrapes the page of a site: each panel has data, each rule is evaluated.

Unlike test_dashboards, the series of clusterctl are what `clusterctl web` exports of a journal, and all come by scrapes;
those of the other exporters are recorded or published ones, served as they are.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from clusterctl.edges.resources import resource
from clusterctl.edges.site.night_record import write_record
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.acts import Act
from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.nightly.record import NightRecord
from clusterctl.fleet.payloads.hardware import BadLinks, FabricFault, FabricFaultSeen, FabricLinksJudged
from clusterctl.fleet.quantity import Quantity, at_least, at_most
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import update
from clusterctl.operations.site_facts import state_dir
from lab.tests.lab_kit import eventually
from scripts.grafana_boards import BOARDS
from tests.cli.site_of_three import write
from tests.edges.ansible.support import DATA
from tests.edges.ansible.test_dashboards import expressions
from tests.events import new_event
from tests.ports import reserve_port
from tests.steps.fakes import identified
from tests.web.served import page

WAIT_S = 600.0
PLACE = {"node": "n1", "rack": "A01", "unit": "4", "instance": "n1"}
RULES = resource("roles") / "prometheus/files/rules"
SITE = """
nightly: {window: "02:00-05:00"}
publish: {needed: 2}
"""
pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")


def busy_journal(context: SiteContext) -> None:
    """Write what a bootstrap, a night, a reading of the fabric and a failed job leave in the journal."""
    journal, now = context.journal, datetime.now(UTC)
    bandwidth = Finding(
        check="bw",
        verdict=Verdict.PASS,
        code=Code.PASSED,
        measured=Quantity(391, "Gb/s"),
        expected=at_least(380, "Gb/s"),
    )
    heat = replace(bandwidth, check="heat", measured=Quantity(61, "°C"), expected=at_most(85, "°C"))
    report = {"report": report_to_data(Report("burnin", "bootstrap", (bandwidth, heat), frozenset({Origin.REAL})))}
    identified(journal, "n3", "S3")
    journal.append(
        [
            new_event("node", "id-n1", Kind.STEP_STARTED, {"step": "burnin"}),
            new_event("node", "id-n1", Kind.REPORT_RECORDED, report),
            new_event("node", "id-n3", Kind.ACT_INTENDED, {"act": Act.INSTALL_START, "target": "S3"}),
            NewEvent(
                Stream.FABRIC, "links", FabricLinksJudged(verdict="fail", links=64, proven=62, bad=2, found=(BAD,))
            ),
            NewEvent(Stream.FABRIC, FAULT.subject, FabricFaultSeen(fault=FAULT)),
            new_event("job", "4711", Kind.JOB_ATTRIBUTED, JOB),
        ]
    )
    night = NightRecord(now - timedelta(hours=9), now - timedelta(hours=6), 3, 1, 0)
    write_record(state_dir(context.site), night, None)
    update(context)


BAD = BadLinks(kind="flapping", verdict="fail", cause="c", action="a", rack="A01", count=2)
FAULT = FabricFault("switch_down", ("leaf-1",), "c", "a", "A01", 3, ())
JOB = {
    "failure": "crash", "layer": "hardware", "certainty": "proven", "persistence": "persistent", "rule": "broken_part",
    "error": "xid_79", "cause": "lost", "action": "restart", "hosts": ["n2"],
}  # fmt: skip
IN_THE_SCRAPES = {"GpuXid", "MemoryUncorrectable", "SparesShort", "ZpoolUnhealthy"}
"""An Xid 79, a module with an error, a degraded pool in recorded scrapes; one gold node of two that the site needs."""


class Scrapes(SimpleHTTPRequestHandler):
    """Serves files of recorded scrapes as an exporter does."""

    extensions_map = {".prom": "text/plain; version=0.0.4"}  # noqa: RUF012 — as the base class has it

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def exporters(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Scrapes, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def configuration(recorded: str, web: str, token: Path) -> dict[str, Any]:
    """Return a configuration with the jobs and labels of the role prometheus, whose targets are on this machine."""
    jobs: list[dict[str, Any]] = [
        {
            "job_name": name,
            "metrics_path": f"/{name}.prom",
            "static_configs": [{"targets": [recorded], "labels": PLACE}],
        }
        for name in ("node_exporter", "dcgm_exporter")
    ]
    jobs.append(
        {
            "job_name": "bmc",
            "metrics_path": "/ipmi_exporter.prom",
            "static_configs": [{"targets": [recorded], "labels": PLACE}],
        }
    )
    jobs.append(
        {
            "job_name": "clusterctl",
            "honor_labels": True,
            "authorization": {"credentials_file": str(token)},
            "static_configs": [{"targets": [web]}],
        }
    )
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [f"{RULES}/*.yml"],
        "scrape_configs": jobs,
    }


@dataclass(frozen=True, slots=True)
class Scraping:
    """A real Prometheus that scrapes a page and recorded exporters."""

    port: int

    def get(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[float]:
        """Return the values of all series now."""
        return [float(row["value"][1]) for row in self.get("query", query=expression)["result"]]

    def settled(self) -> bool:
        """Return whether each target has answered several times, and each group of rules was evaluated since."""
        try:
            counts = self.values("count_over_time(up[1h]) and on() (min(up) == 1)")
            groups = self.get("rules")["groups"]
        except OSError:
            return False
        evaluated = all(not group["lastEvaluation"].startswith("0001") for group in groups)
        return len(counts) == 4 and min(counts) >= 5 and evaluated


@pytest.fixture(scope="module")
def scraping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraping]:
    folder = tmp_path_factory.mktemp("scraping")
    site = write(folder)
    with (site / "site.yml").open("a") as file:
        file.write(SITE)
    context = open_site(site)
    busy_journal(context)
    now = datetime.now(UTC)
    secret = AccountFile(site / "state" / "web").add_token(
        "prometheus", UserRole.VIEWER, "root", now, now + timedelta(days=1)
    )
    (folder / "token").write_text(secret)
    found = Scraping(reserve_port("127.0.0.1"))
    with ExitStack() as stack:
        stack.callback(context.journal.close)
        web = stack.enter_context(page(context)).removeprefix("http://")
        recorded = stack.enter_context(exporters(DATA / "scrapes"))
        (folder / "prometheus.yml").write_text(json.dumps(configuration(recorded, web, folder / "token")))
        argv = [
            "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{found.port}",
        ]  # fmt: skip
        log = stack.enter_context((folder / "log").open("wb"))
        program = subprocess.Popen(argv, stdout=log, stderr=log)
        stack.callback(program.wait)
        stack.callback(program.kill)
        assert eventually(found.settled, WAIT_S), (folder / "log").read_text()
        time.sleep(2)
        yield found


@pytest.mark.parametrize("name", [board.name for board in BOARDS])
def test_each_panel_has_data_of_the_page_and_the_exporters(scraping: Scraping, name: str) -> None:
    """Each query gives at least one series, and no value that is no number."""
    found = {(title, expr): scraping.values(expr) for title, expr in expressions(name)}
    assert found
    assert [key for key, values in found.items() if not values or not all(map(math.isfinite, values))] == []


def test_each_rule_is_evaluated_on_what_was_scraped(scraping: Scraping) -> None:
    """Prometheus reports no error of any, such as labels that match several series; those whose fault is there are
    active, and no other.
    """
    rules = [rule for group in scraping.get("rules")["groups"] for rule in group["rules"]]
    alerts = {rule["name"]: rule for rule in rules if rule["type"] == "alerting"}
    assert len(alerts) >= 35
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []
    active = {name for name, rule in alerts.items() if rule["state"] != "inactive"}
    assert active == IN_THE_SCRAPES
