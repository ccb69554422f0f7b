"""The dashboards of the role grafana: each query has data on a real Prometheus that holds a site's series."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from prometheus_client.parser import text_string_to_metric_families

from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.nightly.record import NightRecord
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.payloads.hardware import BadLinks, FabricFault, FabricLinksJudged
from clusterctl.fleet.quantity import Quantity, at_least, at_most
from clusterctl.fleet.reporting.offenders import NONE
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.fleet.state import NodeState
from clusterctl.operations.metrics import FleetSnapshot, StepEnd, exposition, figures_of
from clusterctl.ports.journal import JournalHealth
from lab.tests.lab_kit import eventually
from scripts.grafana_boards import BOARDS
from scripts.grafana_dashboards import FOLDER, built
from tests.edges.ansible.support import DATA
from tests.ports import reserve_port
from tests.steps.fakes import NOW

WAIT_S = 600.0
EVERY = timedelta(minutes=1)
SAMPLES = 75
END = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
PLACE = {"node": "n1", "rack": "A01", "unit": "4", "instance": "n1"}
BOARD_NAMES = [board.name for board in BOARDS]


def finding(check: str, value: float, *, highest: bool = False) -> Finding:
    bound = at_most(85, "°C") if highest else at_least(380, "Gb/s")
    measured = Quantity(value, bound.unit)
    return Finding(check=check, verdict=Verdict.PASS, code=Code.PASSED, measured=measured, expected=bound)


def busy_site() -> str:
    """Return what clusterctl exports for a site with something of everything: installs, faults, bad links, a night."""
    report = Report(
        "burnin", "bootstrap", (finding("bw", 391), finding("heat", 61, highest=True)), frozenset({Origin.REAL})
    )
    gold = NodeState(
        NodeId("id-n1"), "n1", stage=Stage.GOLD, sku="h100", reports={"burnin": report}, reported_at={"burnin": NOW}
    )
    stopped = NodeState(NodeId("id-n2"), "n2", stage=Stage.QUARANTINED, sku="h100", stopped_at=Step.BURNIN)
    installing = figures_of(NodeState(NodeId("id-n3"), "n3", stage=Stage.DISCOVERED, sku="h100"))
    found = FleetSnapshot(
        site="s",
        now=END,
        nodes=(figures_of(gold), figures_of(stopped), replace(installing, acts=("install.start",))),
        steps=(StepEnd(at=END, step="install", verdict="pass", seconds=1200.0),),
        faults=(FabricFault("switch_down", ("leaf-1",), "c", "a", "A01", 3, ()),),
        night=NightRecord(END - timedelta(hours=9), END - timedelta(hours=6), 3, 1, 0),
        spares=Spares(10, 9, 20),
        offenders=NONE,
        journal=JournalHealth(4096, 7, END, 2),
        links=FabricLinksJudged(verdict="fail", links=64, proven=62, bad=2, found=(BAD,)),
        incidents={("links", "warning"): 1, ("nodes", "critical"): 1},
        jobs={("hardware", "proven"): 2},
        due=END + timedelta(hours=20),
    )
    return exposition(found)


BAD = BadLinks(kind="flapping", verdict="fail", cause="c", action="a", rack="A01", count=2)


def scrapes() -> Iterator[tuple[Mapping[str, str], str]]:
    """Yield target labels, as the role prometheus gives them, and the text of each exporter."""
    yield {"job": "hosts", "instance": "c:9100"}, busy_site()
    for exporter in ("node_exporter", "dcgm_exporter"):
        yield {"job": exporter, **PLACE}, (DATA / f"scrapes/{exporter}.prom").read_text()
        yield {"job": exporter, **PLACE}, "up 1\n"


def openmetrics() -> str:
    """Return all series with a sample a minute, up to `END`."""
    lines: list[str] = []
    times = [END - EVERY * number for number in reversed(range(SAMPLES))]
    for target, text in scrapes():
        untyped = "\n".join(
            line for line in text.splitlines() if not line.startswith("#")
        )  # the parser renames counters
        for family in text_string_to_metric_families(untyped + "\n"):
            for sample in family.samples:
                pairs = {**target, **sample.labels} if target["job"] == "hosts" else {**sample.labels, **target}
                labels = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in pairs.items())
                lines += [f"{sample.name}{{{labels}}} {sample.value} {at.timestamp():.0f}" for at in times]
    return "\n".join([*lines, "# EOF", ""])


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A real Prometheus that scrapes nothing and has the series of `openmetrics`."""

    port: int

    def get(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}{path}?{urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=600) as answer:
            return json.load(answer)

    def ready(self) -> bool:
        try:
            return bool(self.get("/api/v1/status/buildinfo"))
        except OSError:
            return False

    def values(self, expression: str) -> list[float]:
        """Return the values of all series at `END`."""
        answer = self.get("/api/v1/query", query=expression, time=str(END.timestamp()))
        return [float(row["value"][1]) for row in answer["data"]["result"]]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path_factory.mktemp("dashboards")
    (folder / "series.txt").write_text(openmetrics())
    argv = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "series.txt"), str(folder / "data")]
    made = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    found = Prometheus(reserve_port("127.0.0.1"))
    argv = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{found.port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        program = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        assert eventually(found.ready, WAIT_S), (folder / "log").read_text()
        yield found
    finally:
        program.kill()
        program.wait()


def expressions(name: str) -> list[tuple[str, str]]:
    """Return panel and query of each target of a dashboard's file, for node n1."""
    panels = json.loads((FOLDER / f"{name}.json").read_text())["panels"]
    return [(panel["title"], target["expr"].replace("$node", "n1")) for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("name", BOARD_NAMES)
def test_each_query_has_data(prometheus: Prometheus, name: str) -> None:
    """Each query of each panel gives at least one series, and no value that is no number."""
    found = {(title, expr): prometheus.values(expr) for title, expr in expressions(name)}
    assert found
    empty = [key for key, values in found.items() if not values or not all(map(math.isfinite, values))]
    assert empty == []


def test_a_query_without_data_is_found(prometheus: Prometheus) -> None:
    """A metric that no exporter has gives no series: the test above would fail."""
    assert prometheus.values("clusterctl_no_such_metric") == []


def test_the_values_are_those_of_the_series(prometheus: Prometheus) -> None:
    """What the panels compute: the share of a limit, the age of a night, memory in use."""
    by_panel = {title: expr for name in BOARD_NAMES for title, expr in expressions(name)}
    assert prometheus.values(by_panel["Lowest figures against their limit"]) == pytest.approx([391 / 380])
    assert prometheus.values(by_panel["Since the last night's end"]) == [6 * 3600]
    assert prometheus.values(by_panel["GPUs with an Xid"]) == [79]
    assert prometheus.values(by_panel["Memory in use, by rack"]) == pytest.approx([67912 / (8 * 81080)])


@pytest.mark.parametrize("name", BOARD_NAMES)
def test_the_files_are_what_the_code_builds(name: str) -> None:
    """`make dashboards` writes them again; each has an address of its own and Prometheus as its source."""
    (board,) = [board for board in BOARDS if board.name == name]
    text = (FOLDER / f"{name}.json").read_text()
    assert text == built(board)
    document = json.loads(text)
    assert document["uid"] == f"clusterctl-{name}"
    sources = {target["datasource"]["uid"] for panel in document["panels"] for target in panel["targets"]}
    assert sources == {"prometheus"}


def test_no_other_files_are_shipped() -> None:
    assert sorted(path.name for path in Path(FOLDER).iterdir()) == sorted(f"{name}.json" for name in BOARD_NAMES)
