"""Gold expires: `nodes` and `report` print when, and which nodes have expired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.operations.gold_pool import expired_note
from clusterctl.operations.reports import ReportOverview
from clusterctl_cli.acceptance import acceptance_text
from tests.cli.nights import write
from tests.cli.site_of_three import run

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PASSED = Report(
    "burnin",
    "nightly",
    (Finding(check="all_reduce", verdict=Verdict.PASS, code=Code.PASSED, limits="ab" * 32),),
    frozenset({Origin.REAL}),
)


def row(days: int, expiry: timedelta | None) -> str:
    """The report's line of a gold node that was burned in so many days ago."""
    at = NOW - timedelta(days=days)
    node = NodeState(
        NodeId("1"), "n1", Stage.GOLD, at, Verdict.PASS, reports={"burnin": PASSED}, reported_at={"burnin": at}
    )
    text = acceptance_text([node], ReportOverview("dc1", simulated=False, now=NOW, expiry=expiry))
    return next(line for line in text.splitlines() if line.startswith("| n1 "))


@pytest.mark.parametrize(
    ("days", "expiry", "until"),
    [
        (3, timedelta(days=14), "2026-12-03"),
        (20, timedelta(days=14), "**expired 2026-11-16**"),
        (20, None, ""),
    ],
)
def test_a_report_has_the_end_of_each_gold(days: int, expiry: timedelta | None, until: str) -> None:
    """And by which suite and limits it was given; a site without nights has no expiry."""
    cells = [cell.strip() for cell in row(days, expiry).split("|")]
    assert cells[6 + 1] == until
    assert cells[4:6] == ["nightly", "ab" * 6]


def admitted(name: str, days: int, stage: Stage = Stage.GOLD) -> NodeSummary:
    return summarise(NodeState(NodeId(name), name, stage, NOW - timedelta(days=days)))


def test_nodes_lists_expired_gold() -> None:
    """Gold ones only; where the site has no limit for the age of evidence, nothing expires."""
    fleet = [admitted("n1", 3), admitted("n2", 20), admitted("n3", 20, Stage.CABLED), admitted("n4", 15)]
    two_weeks = timedelta(days=14)
    assert expired_note(fleet, two_weeks, NOW) == "expired: 2 gold nodes were admitted more than 14 days ago: n2, n4"
    assert expired_note(fleet[:1], two_weeks, NOW) == ""
    assert expired_note(fleet, None, NOW) == ""


def test_the_list_of_a_fresh_site_has_no_such_line(tmp_path: Path) -> None:
    """Its nodes have just been admitted."""
    result = run(write(tmp_path), "nodes").stdout
    assert "4 gold" in result
    assert "expired" not in result
