"""`report`: the same truth as Markdown, columns, JSON and one HTML page; and the sheet of one node for its vendor."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fleet_report import LIMITS, fill
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Evidence, Origin
from clusterctl.fleet.quantity import Quantity, at_most
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.reports import FleetReport, fleet_report
from clusterctl_cli.acceptance import acceptance_text
from clusterctl_cli.fleet_report.page import fleet_page
from clusterctl_cli.fleet_report.plain_text import fleet_markdown, fleet_text
from tests.cli.pictures.test_cable_report import Reading
from tests.cli.site_of_three import HOT, NOW, append, quarantined, run, write
from tests.edges.site.ready import write_ready_site

OUTPUT = b"[ok, exit code 0, 0.4 s]\n" + b"x\n" * 90 + b"Serial Number : 1650 <script>alert(1)</script>\n" + b"y\n" * 9
SMI = Evidence("nvidia-smi -q", "10.0.1.2", NOW, Origin.REAL, OUTPUT)
CHARGED = replace(
    HOT, measured=Quantity(2, "errors"), expected=at_most(0, "errors"), evidence=(SMI.digest,), limits=LIMITS.digest
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """n2 is in quarantine by a GPU, with raw output, limits and a serial."""
    folder = write(tmp_path)
    append(folder, quarantined("n2", "burnin", CHARGED), [SMI])
    return folder


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight nodes after their burn-in, one in quarantine, all pairs recorded."""
    folder = tmp_path_factory.mktemp("eight") / "site"
    write_ready_site(folder)
    fill(open_site(folder), 8)
    return folder


def sound(text: str) -> Reading:
    """A page that closes what it opens, loads nothing, runs nothing, and whose links lead somewhere."""
    page = Reading(text)
    assert page.open == []
    assert page.loads == []
    assert "script" not in page.tags
    assert "@import" not in text
    assert "url(http" not in text
    assert len(page.ids) == len(set(page.ids))
    assert page.targets - {"hatch"} <= set(page.ids)
    return page


def test_a_page_that_needs_nothing_else(site: Path, tmp_path: Path) -> None:
    """Foreign text stays text; the stopped node is there with part, serial, command and the line that matters."""
    page = tmp_path / "page.html"
    run(site, "report", "--html", str(page))
    text = page.read_text()
    sound(text)
    assert "Serial Number : 1650 &lt;script&gt;alert(1)" in text
    for words in ("1 of 2 nodes are gold, 1 stopped", "nvidia-smi -q", "2 errors", "replace GPU 3", "[… 87 lines]"):
        assert words in text


def test_a_fleet_with_figures_and_pairs(eight: Path) -> None:
    """Distributions with their limits, the matrix of every pair, the stopped node's figures with their source."""
    text = run(eight, "report", "--format", "html").output
    sound(text)
    assert "192 measurements of ib_write_bw" in text
    assert "expected at least 460 GB/s" in text
    assert "node0008 gpu 3: 2 errors" in text


def test_a_lean_reading_shows_the_same(eight: Path) -> None:
    """Columns, Markdown and page are the same, whether what passed is kept whole or not; the whole takes more memory."""
    context = open_site(eight)
    sheets = [
        replace(one, overview=replace(one.overview, now=NOW)) for one in map(partial(read, context), (False, True))
    ]
    for written in (fleet_text, fleet_page, lambda one: fleet_markdown(acceptance_text(one.nodes, one.overview), one)):
        lean, whole = map(written, sheets)
        assert lean == whole
    findings = [
        {id(finding) for node in one.nodes for report in node.reports.values() for finding in report.findings}
        for one in sheets
    ]
    assert len(findings[0]) * 3 < len(findings[1])


def read(context: SiteContext, whole: bool) -> FleetReport:
    return fleet_report(context, whole=whole)


def test_the_figures_as_json(eight: Path) -> None:
    """The acceptance report's keys stay; figures and pairs are added to them."""
    output = json.loads(run(eight, "report", "--json").output)
    assert {"site", "simulated", "at", "warnings", "counts", "fabric", "offenders", "nodes"} <= output.keys()
    by_check: dict[str, Any] = {figure["check"]: figure for figure in output["figures"]}
    assert len(by_check["ib_write_bw"]["values"]) == 8
    assert by_check["gpu_ecc"]["values"] == [{"name": "node0008", "subject": "gpu 3", "value": 2.0, "bad": True}]
    assert (output["pairs"]["measured"], output["pairs"]["slow"], output["pairs"]["whole"]) == (192, [], True)
    assert output == json.loads(run(eight, "report", "--format", "json").output) | {"at": output["at"]}


def test_columns_for_a_terminal(eight: Path) -> None:
    """One line a finding with part and remedy, one a metric."""
    text = run(eight, "report", "--format", "terminal").output
    assert "1 quarantined, 7 gold" in text
    (line,) = [line for line in text.splitlines() if line.startswith("node0008")]
    assert "165300000703" in line
    assert "reset the GPU" in line
    assert "ib_write_bw [Gb/s]" in text


def test_markdown_stays_the_acceptance_report(eight: Path) -> None:
    """What it always was, and the distributions below it; `md` is the same word."""
    text = run(eight, "report").output
    assert text.startswith("# Acceptance of ")
    assert "## Distributions" in text
    assert "## Pairs" in text
    assert run(eight, "report", "--format", "md").output.splitlines()[2:] == text.splitlines()[2:]


def test_the_sheet_for_a_vendor(site: Path) -> None:
    """Machine, serials, what was measured and expected, command, output, and how it came so, each in its place."""
    text = run(site, "report", "n2").output
    assert text.startswith("# Dell Inc. PowerEdge XE9680, serial S2")
    for words in (
        "- Part's serial: 1650",
        "- Measured: 2 errors",
        "- Expected: at most 0 errors",
        "    $ nvidia-smi -q",
        "    Serial Number : 1650",
        "QUARANTINED at burnin: 2 uncorrectable errors",
    ):
        assert words in text
    output = json.loads(run(site, "report", "n2", "--json").output)
    assert output["name"] == "n2"
    assert output["charges"][0]["exhibits"][0]["digest"] == SMI.digest
    assert [moment["mark"] for moment in output["timeline"]][-1] == "bad"
    sound(run(site, "report", "n2", "--format", "html").output)


def test_the_figure_behind_a_verdict_is_named_with_its_source(eight: Path, site: Path) -> None:
    """As the SKU's limits file has it; where the site no longer has the SKU, by which limits it was judged."""
    output = json.loads(run(eight, "report", "node0008", "--json").output)["charges"][0]
    limit = next(one for one in output["limits"] if one["name"] == "gpu_uncorrectable_ecc_max")
    assert (limit["value"], limit["unit"]) == ("0", "errors")
    assert limit["source"] == LIMITS["gpu_uncorrectable_ecc_max"].source
    assert output["judged_by"] == f"limits {LIMITS.name}"
    (unknown,) = json.loads(run(site, "report", "n2", "--json").output)["charges"]
    assert (unknown["limits"], LIMITS.digest[:12] in unknown["judged_by"]) == ([], True)


def test_a_healthy_node_has_no_claim(site: Path) -> None:
    """Every form of the report has a note of it."""
    assert "not stopped: there is nothing to claim" in run(site, "report", "n1").output
    assert "there is nothing to claim" in run(site, "report", "n1", "--format", "html").output
    assert json.loads(run(site, "report", "n1", "--json").output)["charges"] == []


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--work-orders", "--format", "html"), "--format"),
        (("--work-orders", "--format", "terminal"), "--format"),
        (("--format", "csv"), "--format"),
        (("--json", "--format", "html"), "--format"),
        (("--html", "x.html", "--format", "json"), "--html"),
        (("--html", "x.html", "--json"), "--html"),
        (("n1", "--work-orders"), "n1"),
        (("unknown",), "unknown"),
    ],
)
def test_what_cannot_be_is_refused(site: Path, words: tuple[str, ...], where: str) -> None:
    """With the option that is wrong."""
    with pytest.raises(UsageError) as error:
        run(site, "report", *words)
    assert error.value.where == where
    assert error.value.remedy


def test_nothing_is_replaced_unasked(site: Path, tmp_path: Path) -> None:
    """An existing page stays, unless --force is given."""
    page = tmp_path / "page.html"
    page.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        run(site, "report", "--html", str(page))
    assert page.read_text() == "mine"
    run(site, "report", "--html", str(page), "--force")
    assert page.read_text().startswith("<!doctype html>")
