"""Repeat offenders: listed by `report` and by `why`, from the journal."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.reporting.offenders import BadPart, Offence, Offenders
from tests.cli.site_of_three import append, run, write
from tests.events import new_event

STOP = {"step": "burnin", "verdict": "fail", "remedy": "replace it", "cause": "2 errors", "check": "gpu_ecc"}
AGAIN = {**STOP, "subject": "gpu 3", "serial": "1650"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """n2 was quarantined before by a check of a GPU that has failed in n1, too."""
    made = write(tmp_path)
    append(made, [new_event("node", f"id-{name}", Kind.NODE_QUARANTINED, AGAIN) for name in ("n2", "n1")])
    return made


def test_the_report_names_them(site: Path) -> None:
    """The machine with what it did, the part with all the machines in which it failed."""
    text = run(site, "report").stdout
    section = text[text.index("## Repeat offenders") :].partition("\n## ")[0]
    assert "- n2: 2 times in 28 days, 0 h out:" in section
    assert "gpu_ecc on gpu 3" in section
    assert "- part 1650 failed 2 times, in 2 machines: n2 (gpu_ecc on gpu 3, 20" in section
    output = json.loads(run(site, "report", "--json").stdout)["offenders"]
    assert (output["window_days"], [node["name"] for node in output["nodes"]]) == (28, ["n2"])
    assert [[one["name"] for one in part["offences"]] for part in output["parts"]] == [["n2", "n1"]]


def test_why_reports_that_it_happened_before(site: Path) -> None:
    """Of the machine and of its part; n1 is no offender, its part is one."""
    assert "Again: quarantined 2 times in 28 days" in run(site, "why", "n2").stdout
    output = json.loads(run(site, "why", "n1", "--json").stdout)["nodes"][0]["repeated"]
    assert len(output) == 1
    assert output[0].startswith("part 1650 failed 2 times, in 2 machines")


def test_a_part_is_known_again_in_another_machine() -> None:
    """It failed in two machines and is fitted in a third, which never failed: by its serial that one lists it, too."""
    at = datetime(2026, 11, 20, tzinfo=UTC)
    part = BadPart(
        "1650",
        tuple(Offence(NodeId(node), at, "gpu_ecc", "gpu 3", "1650", "", by_operator=False) for node in ("a", "b")),
    )
    found = Offenders(parts=(part,))
    assert found.parts_in(NodeId("c"), {"1650", "1651"}) == (part,)
    assert found.parts_in(NodeId("c"), {"1651"}) == ()


def test_a_fleet_without_them_has_no_such_lines(tmp_path: Path) -> None:
    site = write(tmp_path)
    assert "Repeat offenders" not in run(site, "report").stdout
    assert "Again" not in run(site, "why", "n2").stdout
    assert json.loads(run(site, "report", "--json").stdout)["offenders"] == {
        "window_days": 28,
        "nodes": [],
        "parts": [],
    }
