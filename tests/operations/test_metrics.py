"""The site's own metrics: what Prometheus reads of a fleet, and how much of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from clusterctl import __version__
from clusterctl.edges.site.figure_record import COLUMNS, FigureRecord
from clusterctl.fleet.decisions.decision import hold
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.nightly.record import NightRecord
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.payloads.node import ReportRecorded, StepStarted
from clusterctl.fleet.quantity import Bound, Quantity, at_least, at_most
from clusterctl.fleet.reporting.offenders import NONE
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.expected_parts import expectations
from clusterctl.operations.metrics import (
    FORM,
    FleetMetrics,
    FleetSnapshot,
    StepEnds,
    export,
    exposition,
    figures_of,
    margin,
    night_due,
)
from clusterctl.ports.journal import JournalHealth
from clusterctl_cli.main import run
from tests.cli.site_of_three import HOT, append, quarantined, write
from tests.events import new_event
from tests.paths import ROOT
from tests.steps.fakes import NOW

CONFIGURE = """
configure:
  roles: [base, ssh_access, node_exporter, zfs_pool]
  variables: {zfs_pool_name: scratch}
"""
Samples = dict[str, dict[tuple[str, ...], float]]


def samples(text: str) -> Samples:
    """Return name → values of the labels, by the names of these → value, read by the client library's own parser."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def finding(check: str, subject: str, value: float, verdict: Verdict = Verdict.PASS) -> Finding:
    code = Code.PASSED if verdict is Verdict.PASS else Code.GPU_SLOW
    bound = at_most(85, "°C") if check == "heat" else at_least(380, "Gb/s")
    measured = Quantity(value, bound.unit)
    return Finding(
        check=check, verdict=verdict, code=code, subject=subject, cause="c", measured=measured, expected=bound
    )


def node(name: str, *findings: Finding, stage: Stage = Stage.GOLD, stopped: Step | None = None) -> NodeState:
    report = Report("burnin", "bootstrap", findings, frozenset({Origin.REAL}))
    return NodeState(
        NodeId(f"id-{name}"),
        name,
        stage=stage,
        sku="h100",
        stopped_at=stopped,
        reports={"burnin": report},
        reported_at={"burnin": NOW},
    )


def event(seq: int, subject: str, seconds: float, payload: StepStarted | ReportRecorded) -> Event:
    at = NOW + timedelta(seconds=seconds)
    return Event(stream=Stream.NODE, subject=subject, payload=payload, seq=seq, at=at, actor="a", run="r")


def ends_of(events: Sequence[Event], ends: StepEnds | None = None, now: datetime = NOW) -> StepEnds:
    found = ends or StepEnds()
    found.add(events, now)
    return found


def exported(*nodes: NodeState, steps: Sequence[Event] = ()) -> Samples:
    found = FleetSnapshot(
        site="s",
        now=NOW,
        nodes=tuple(map(figures_of, nodes)),
        steps=tuple(ends_of(steps).ends),
        faults=(),
        night=NightRecord(NOW, None, 3, 1, 0),
        spares=Spares(10, 9, 20),
        offenders=NONE,
        journal=JournalHealth(4096, 7, NOW, 2),
    )
    return samples(exposition(found))


def test_a_node_has_one_figure_for_each_check_its_worst_part() -> None:
    """The lowest bandwidth, the highest temperature; and what they are compared with, once a SKU."""
    found = exported(
        node("n1", finding("bw", "mlx5_0", 391), finding("bw", "mlx5_1", 384), finding("heat", "gpu 0", 61)),
        node("n2", finding("bw", "mlx5_0", 390), finding("heat", "gpu 0", 60), finding("heat", "gpu 1", 91)),
    )
    figures = found["clusterctl_burnin_figure"]
    assert figures[("bw", "n1", "Gb/s")] == 384
    assert figures[("heat", "n2", "°C")] == 91
    assert len(figures) == 4
    assert found["clusterctl_burnin_limit"] == {("bw", "min", "h100", "Gb/s"): 380, ("heat", "max", "h100", "°C"): 85}


def test_a_stopped_node_counts_by_the_code_of_its_worst_finding() -> None:
    """Retired nodes stop nothing; a gold node has the time of its evidence."""
    bad = finding("bw", "mlx5_0", 200, Verdict.FAIL)
    found = exported(
        node("n1"),
        node("n2", bad, stage=Stage.QUARANTINED, stopped=Step.BURNIN),
        node("n3", bad, stage=Stage.RETIRED, stopped=Step.BURNIN),
    )
    assert found["clusterctl_nodes"] == {("h100", "gold"): 1, ("h100", "quarantined"): 1, ("h100", "retired"): 1}
    assert found["clusterctl_nodes_stopped"] == {("gpu_slow", "quarantined", "burnin"): 1}
    assert found["clusterctl_evidence_timestamp_seconds"] == {("n1",): NOW.timestamp()}


def test_steps_have_durations_and_reports() -> None:
    """From a step's start to its report; a start without a report has no duration."""
    report = Report("burnin", "bootstrap", (finding("bw", "mlx5_0", 391),), frozenset({Origin.REAL}))
    events = [event(i + 1, f"n{i}", 0, StepStarted(step=Step.BURNIN)) for i in range(4)]
    events += [event(i + 5, f"n{i}", 100 * (i + 1), ReportRecorded(report=report)) for i in range(3)]
    found = exported(steps=events)
    seconds = found["clusterctl_step_duration_seconds"]
    assert seconds[("0.5", "burnin")] == 200
    assert seconds[("1", "burnin")] == 300
    assert found["clusterctl_step_reports"] == {("burnin", "pass"): 3}


def test_steps_that_are_read_in_parts_are_the_same() -> None:
    """Events that are given twice count once; what is older than the window is forgotten."""
    report = Report("burnin", "bootstrap", (finding("bw", "mlx5_0", 391),), frozenset({Origin.REAL}))
    started = [event(i + 1, f"n{i}", 0, StepStarted(step=Step.BURNIN)) for i in range(3)]
    ended = [event(i + 4, f"n{i}", 100 * (i + 1), ReportRecorded(report=report)) for i in range(3)]
    whole = ends_of([*started, *ended])
    parts = ends_of(started[1:] + ended, ends_of([*started, ended[0]]))
    assert parts == whole
    assert [end.seconds for end in parts.ends] == [100, 200, 300]
    later = ends_of([], parts, NOW + timedelta(days=1, seconds=250))
    assert [end.seconds for end in later.ends] == [300]


def test_a_service_reads_what_has_changed(tmp_path: Path) -> None:
    """Each answer is that of a reader that reads all nodes: after a decision, and without any change."""
    context = open_site(write(tmp_path))
    kept = FleetMetrics(context)
    timestamps = re.compile(r"clusterctl_(metrics_timestamp|journal_bytes).*")

    def same() -> Samples:
        first, second = kept.text(), export(context)
        assert timestamps.sub("", first) == timestamps.sub("", second)
        return samples(first)

    before = same()
    assert same().keys() == before.keys()
    (some, *_others) = context.journal.states()
    context.journal.append(hold(some, "a look", None).events)
    after = same()
    assert after["clusterctl_nodes_on_hold"][()] == before["clusterctl_nodes_on_hold"][()] + 1


def test_nodes_that_are_read_in_advance_are_those_of_the_first_answer(tmp_path: Path) -> None:
    """A reader that is stopped leaves nothing half read; a name with any character stays one label."""
    context = open_site(write(tmp_path))
    kept = FleetMetrics(context)
    kept.read_all(lambda: True)
    kept.read_all(lambda: False)
    assert sorted(one.name for one in kept.figures()) == sorted(state.name for state in context.journal.states())
    assert samples(kept.text()).keys() == samples(export(context)).keys()
    context.journal.close()
    name = 'n1"\n# HELP x\r\u2028'
    assert list(exported(node(name, finding("heat", "gpu 0", 60)))["clusterctl_burnin_figure"]) == [
        ("heat", name, "°C")
    ]


def test_pool_night_and_journal() -> None:
    """9 nodes of 10 gold are needed and two spares: one is missing."""
    found = exported(node("n1"))
    assert found["clusterctl_pool_nodes"][("missing",)] == 1
    assert found["clusterctl_nightly_last_end_timestamp_seconds"][()] == 0
    assert found["clusterctl_claims"][()] == 2


def test_a_night_is_due_without_any_night_ever() -> None:
    """After the last one's end; before the first, a day later than the oldest gold node; never without a gold node."""
    young, old = (
        figures_of(replace(node(name), since=NOW - timedelta(hours=age))) for name, age in (("a", 2), ("b", 9))
    )
    seen = figures_of(replace(node("c", stage=Stage.CABLED), since=NOW - timedelta(days=9)))
    first = NOW + timedelta(hours=24 + 26 - 9)
    assert night_due(None, [young, old, seen], 26) == first
    assert night_due(NightRecord(NOW), [young, old, seen], 26) == first
    assert night_due(NightRecord(NOW, NOW), [young, old, seen], 50) == NOW + timedelta(hours=50)
    assert night_due(None, [seen], 26) is None


def test_an_installed_node_has_the_parts_of_its_sku_and_roles(tmp_path: Path) -> None:
    """What monitoring must see of it; a node without a system, and one without an address, has none to be seen."""
    site = write(tmp_path)
    text = (site / "site.yml").read_text()
    (site / "site.yml").write_text(re.sub(r"(?ms)^configure:\n.*?\n\n", "", text) + CONFIGURE)
    context = open_site(site)
    machine, promised = context.site.skus[0], expectations(context.site)
    states = [replace(state, sku=machine.name) for state in context.journal.states()]
    counts = {("n1", "gpu"): machine.gpu_count, ("n1", "adapter"): machine.hca_count}
    assert all(counts.values())
    nodes = [figures_of(state, promised.of(state)) for state in states]
    assert samples(export(context))["clusterctl_expected_zpool"] == {("n1", "scratch"): 1}
    context.journal.close()
    found = FleetSnapshot("s", NOW, nodes, (), (), None, None, NONE, JournalHealth(0, 0, None, 0))
    assert samples(exposition(found))["clusterctl_expected_parts"] == counts


def test_the_command_prints_and_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same metrics, in a file that node_exporter may read; a folder that is not there is exit code 2."""
    site = str(write(tmp_path))
    assert run(["metrics", "--site", site]) == 0
    printed = samples(capsys.readouterr().out)
    assert printed["clusterctl_nodes_stopped"] == {("gpu_ecc_uncorrectable", "quarantined", "burnin"): 1}
    assert printed["clusterctl_journal_bytes"][()] > 0
    assert printed["clusterctl_journal_last_seq"][()] > 0
    file = tmp_path / "clusterctl.prom"
    assert run(["metrics", "--site", site, "--write", str(file)]) == 0
    assert file.stat().st_mode & 0o777 == 0o644
    assert samples(file.read_text()).keys() == printed.keys()
    capsys.readouterr()
    assert run(["metrics", "--site", site, "--write", str(tmp_path / "none" / "x.prom")]) == 2
    assert "none" in capsys.readouterr().err


def test_the_page_lists_each_metric() -> None:
    """docs/reference/metrics.md and the families are the same."""
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {f"clusterctl_{name}" for row in rows for name in re.findall(r"`(\w+)`", row)}
    health = JournalHealth(0, 0, None, 0)
    found = FleetSnapshot("s", NOW, (), (), (), NightRecord(NOW), Spares(0, 0, 0), NONE, health, due=NOW)
    assert listed == {line.split()[2] for line in exposition(found).splitlines() if line.startswith("# HELP")}


def test_prometheus_takes_each_metric_of_the_page_once() -> None:
    """The role drops from node_exporters what the page exports; a night may write its own metrics to a file there."""
    role = yaml.safe_load((ROOT / "roles/prometheus/vars/main.yml").read_text())
    health = JournalHealth(0, 0, None, 0)
    found = FleetSnapshot("s", NOW, (), (), (), None, Spares(0, 0, 0), NONE, health, due=NOW)
    names = {line.split()[2] for line in exposition(found).splitlines() if line.startswith("# HELP")}
    assert {f"clusterctl_{name}" for name in role["__prometheus_page_metrics"]} == names


def test_links_incidents_and_jobs_are_those_of_the_journal(tmp_path: Path) -> None:
    """The last judgement of links by kind and rack, open incidents, failures of jobs of the last seven days."""
    site = write(tmp_path)
    judged = {"verdict": "fail", "links": 8, "proven": 6, "bad": 3}
    bad = {"kind": "flapping", "verdict": "fail", "cause": "c", "action": "a", "rack": "A01", "count": 2}
    hot = {**bad, "kind": "overheated", "rack": "B07", "count": 1}
    failure = {
        "failure": "crash", "layer": "hardware", "certainty": "proven", "persistence": "persistent",
        "rule": "broken_part", "error": "xid_79", "cause": "c", "action": "a",
    }  # fmt: skip
    append(
        site,
        [
            new_event("fabric", "links", Kind.FABRIC_LINKS_JUDGED, {**judged, "bad": 8}),
            new_event("fabric", "links", Kind.FABRIC_LINKS_JUDGED, {**judged, "found": [bad, hot]}),
            *[new_event("job", f"job-{number}", Kind.JOB_ATTRIBUTED, failure) for number in range(2)],
        ],
    )
    assert run(["notify", "send", "--site", str(site)]) == 0
    context = open_site(site)
    found = samples(export(context))
    context.journal.close()
    assert found["clusterctl_links"] == {("bad",): 3, ("judged",): 8, ("proven",): 6}
    assert found["clusterctl_bad_links"] == {("flapping", "A01", "fail"): 2, ("overheated", "B07", "fail"): 1}
    assert found["clusterctl_job_failures"] == {("proven", "hardware"): 2}
    incidents = found["clusterctl_incidents"]
    assert incidents[("nodes", "warning")] == 1
    assert sum(count for (about, _), count in incidents.items() if about == "links") == 2


def test_a_bound_without_limits_is_never_the_worst() -> None:
    """Whatever an older journal holds, the metrics of the others are printed."""
    assert margin(7.0, Bound()) == math.inf
    assert margin(7.0, Bound(low=5.0, high=8.0)) == 1.0


def lines_of(context: SiteContext) -> list[str]:
    """The exposition, without the moment of the answer."""
    return [line for line in export(context).splitlines() if not line.startswith("clusterctl_metrics_timestamp")]


def without_record(context: SiteContext) -> list[str]:
    """What a process reads that finds no record of figures."""
    kept = Path(context.site.folder) / "state/figures.db"
    kept.unlink(missing_ok=True)
    return lines_of(context)


def test_figures_that_are_kept_are_those_of_the_states(tmp_path: Path) -> None:
    """A second process exports what the first one did, and what one without a record would; also after a node has
    changed, after the site expects another thing of a node, and where the record is damaged or of another version.
    """
    folder = write(tmp_path)
    context = open_site(folder)
    context.journal.append(hold(context.journal.state(NodeId("id-n1")), "a look", None).events)
    record = folder / "state/figures.db"
    first = lines_of(open_site(folder))
    assert record.stat().st_mode & 0o777 == 0o600
    kept = FigureRecord(folder / "state", f"{__version__} {FORM}").read()[0]
    assert len(kept) == len(open_site(folder).journal.names())
    assert lines_of(open_site(folder)) == first == without_record(open_site(folder))

    text = (folder / "site.yml").read_text()
    (folder / "site.yml").write_text(re.sub(r"(?ms)^configure:\n.*?\n\n", "", text) + CONFIGURE)
    expected = lines_of(open_site(folder))
    assert any(line.startswith("clusterctl_expected_zpool{") for line in expected)
    assert expected == without_record(open_site(folder))

    lines_of(open_site(folder))
    append(folder, quarantined("n1", "burnin", HOT))
    changed = lines_of(open_site(folder))
    assert changed != expected
    assert changed == without_record(open_site(folder))

    for content in (b"no database at all, but long enough", b""):
        record.write_bytes(content)
        assert lines_of(open_site(folder)) == changed
        assert lines_of(open_site(folder)) == changed
    FigureRecord(folder / "state", "0.1 0").write({"id-n1": ("",) * len(COLUMNS)}, (), "")
    assert lines_of(open_site(folder)) == changed
