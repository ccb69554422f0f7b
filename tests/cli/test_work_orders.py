"""`report --work-orders`: what technicians are handed."""

from __future__ import annotations

import csv
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_cli.work_order_forms import COLUMNS
from tests.cli.site_of_three import HOT, PROOF, SHEET, append, quarantined, run, write
from tests.edges.site.ready import write_ready_site

PORT = Finding(
    check="hca_errors",
    verdict=Verdict.FAIL,
    code=Code.HCA_ERRORS,
    subject="mlx5_0",
    cause="errors",
    remedy="reseat the cable",
    evidence=(PROOF.digest,),
)
PLAN_HEAD = "source_device,source_port,destination_device,destination_port"
EVIL = '=HYPERLINK("http://x")'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_markdown_that_can_be_printed(site: Path) -> None:
    """By rack and unit: node, serials, part, what was found, a box to tick, evidence, the line to write back."""
    append(site, quarantined("n2", "burnin", replace(HOT, evidence=(PROOF.digest,))), [PROOF])
    text = run(site, "report", "--work-orders").output
    assert "1 order for 1 node in 1 rack." in text
    assert "## Rack A01" in text
    assert "### 1. U4 n2, serial S2: gpu 3 (serial 1650)" in text
    assert "- Found by gpu_ecc: 2 uncorrectable errors\n- [ ] **replace GPU 3**\n" in text
    assert f"- Evidence: {PROOF.digest[:12]}\n" in text
    assert "- Write back: `clusterctl release n2 --reason 'gpu 3, serial 1650: …'`" in text
    assert "n1" not in text


def test_the_line_to_write_back_works(site: Path) -> None:
    """It is a command of ours; with words for its `…` it takes the order off, and without them it is refused."""
    output = json.loads(run(site, "report", "--work-orders", "--json").output)
    (order,) = output["orders"]
    assert (order["order"], order["rack"], order["unit"], order["serial"]) == (1, "A01", 4, "1650")
    program, *words = shlex.split(order["write_back"])
    assert program == "clusterctl"
    with pytest.raises(UsageError, match="stands for your own words"):
        run(site, *words, "--yes")
    run(site, *(word.replace("…", "replaced by serial 1651") for word in words), "--yes")
    text = run(site, "report", "--work-orders").output
    assert "No work orders: of 3 nodes (1 not discovered yet) none is stopped, and the fabric has no fault" in text


def test_csv_for_a_ticket_system(site: Path) -> None:
    """One line an order, whatever the cause quotes; no cell is a formula; the digests are whole."""
    evil = replace(HOT, cause=f'{EVIL}\n"two", lines', evidence=(PROOF.digest,))
    append(site, quarantined("n2", "burnin", evil), [PROOF])
    (row,) = rows(run(site, "report", "--work-orders", "--format", "csv").output)
    assert tuple(row) == COLUMNS
    assert (row["rack"], row["unit"], row["node"], row["part_serial"]) == ("A01", "4", "n2", "1650")
    assert row["found"] == f'gpu_ecc: {EVIL} "two", lines'
    assert row["evidence"] == PROOF.digest
    append(site, quarantined("n2", "burnin", replace(HOT, remedy=EVIL)))
    (row,) = rows(run(site, "report", "--work-orders", "--format", "csv").output)
    assert row["do"] == f"'{EVIL}"


def test_the_cable_at_the_part(site: Path) -> None:
    """Both its ends by the site's wiring plan; a site that has none yet gets its orders without."""
    append(site, quarantined("n2", "burnin", PORT), [PROOF])
    (site / "wiring.csv").write_text(f"{PLAN_HEAD}\nn2,mlx5_0,leaf-1,7\n")
    (row,) = rows(run(site, "report", "--work-orders", "--format", "csv").output)
    assert (row["part"], row["cables"]) == ("mlx5_0", "n2 mlx5_0 – leaf-1 port 7")
    (site / "wiring.csv").unlink()
    (row,) = rows(run(site, "report", "--work-orders", "--format", "csv").output)
    assert (row["part"], row["cables"]) == ("mlx5_0", "")


def test_a_node_that_an_operator_holds_is_not_forgotten(site: Path) -> None:
    """No work is to be done there; the holder and the reason are listed."""
    run(site, "hold", "n1", "--reason", "for the vendor", "--yes")
    text = run(site, "report", "--work-orders").output
    assert "## Held by operators, nothing to do" in text
    assert "for the vendor" in text
    (held,) = json.loads(run(site, "report", "--work-orders", "--json").output)["held"]
    assert (held["name"], held["reason"]) == ("n1", "for the vendor")


def test_a_fleet_of_which_nothing_is_known(tmp_path: Path) -> None:
    """A message reports it; CSV has its headings only, and the message goes to standard error."""
    write_ready_site(tmp_path / "site")
    (tmp_path / "site/bmcs.csv").write_text(SHEET)
    nothing = "No work orders: nothing is known of 3 nodes yet. clusterctl discover reads them."
    assert nothing in run(tmp_path / "site", "report", "--work-orders").output
    result = run(tmp_path / "site", "report", "--work-orders", "--format", "csv")
    assert result.stdout == ",".join(COLUMNS) + "\n"
    assert result.stderr == f"{nothing}\n"


def test_into_a_file(site: Path, tmp_path: Path) -> None:
    """Whole, readable by others, and never over another without --force."""
    file = tmp_path / "orders.csv"
    words = ("report", "--work-orders", "--format", "csv", "--output", str(file))
    assert run(site, *words).stdout == ""
    assert len(rows(file.read_text())) == 1
    with pytest.raises(UsageError, match="exists already"):
        run(site, *words)
    run(site, *words, "--force")


@pytest.mark.parametrize("words", [["--format", "csv"], ["--work-orders", "--json", "--format", "md"]])
def test_formats_that_there_are_not(site: Path, words: list[str]) -> None:
    """The acceptance report is no table, and JSON has one form."""
    with pytest.raises(UsageError, match=r"no (other )?format"):
        run(site, "report", *words)
