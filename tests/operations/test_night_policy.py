"""Nights that can never test a node are reported before the first one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from clusterctl.fleet.diagnosis import Health
from clusterctl.operations.night_policy import diagnosis
from clusterctl_cli.main import run
from tests.edges.site.ready import write_ready_site

CASES = {
    "too few for two": ("{percent: 5}", 24, "5 % of 24 gold nodes are 1", "nightly.percent to 9"),
    "held down": ("{percent: 50, most: 1}", 24, "at most 1", "nightly.most to 2"),
    "one node": ("{percent: 100}", 1, "100 % of 1 gold nodes are 1", "admit more nodes"),
    "window": ("{percent: 50, window: 02:00-02:10}", 24, "the window has 10 min", "widen nightly.window"),
    "enough": ("{percent: 50}", 24, "", ""),
    "none": ("", 24, "", ""),
}


def written(folder: Path, nightly: str, nodes: int) -> Path:
    site = write_ready_site(folder / "site")
    rows = "".join(f"node{number:03},10.0.0.{number}\n" for number in range(1, nodes + 1))
    (site / "bmcs.csv").write_text(f"name,bmc\n{rows}")
    if nightly:
        with (site / "site.yml").open("a") as file:
            file.write(f"nightly: {nightly}\n")
    return site


@pytest.mark.parametrize(("nightly", "nodes", "cause", "remedy"), CASES.values(), ids=CASES)
def test_doctor_and_plan_report_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], nightly: str, nodes: int, cause: str, remedy: str
) -> None:
    """With the arithmetic and what to set; nothing where nights work, or are not planned."""
    site = written(tmp_path, nightly, nodes)
    found = diagnosis(load_site(site))
    run(["plan", "--json", "--site", str(site)])
    warnings = [text for text in json.loads(capfd.readouterr().out)["warnings"] if "night" in text]
    assert found.health is (Health.WARN if cause else Health.OK)
    assert len(warnings) == bool(cause)
    for text in (found.found, warnings[0]) if cause else ():
        assert text.startswith("no night will test a node: ")
        assert cause in text
    if cause:
        assert remedy in found.remedy
        assert remedy in warnings[0]
