"""`clusterctl cable plan` and `cable lint`: exit codes, files, and the two faces of their answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl_cli.commands.cable_lint import lint
from clusterctl_cli.commands.cable_plan import plan

SMALL = ("--hosts", 4, "--rails", 2, "--radix", 8)


def run(command, *args: object):
    return CliRunner().invoke(command, [str(arg) for arg in args])


def test_a_plan_on_stdout_is_nothing_but_the_plan():
    """Stdout can be piped on; the counts are on stderr."""
    result = run(plan, *SMALL)
    assert result.exit_code == 0
    assert len(decode_plan(result.stdout.encode(), file="-").cables) == 16
    assert "2 leaf + 2 spine switches, 16 links" in result.stderr


def test_a_plan_in_a_file(tmp_path):
    """Written whole, never over another file unless ordered; the written file is clean."""
    file = tmp_path / "wiring.csv"
    assert run(plan, *SMALL, "--out", file).exit_code == 0
    refused = run(plan, *SMALL, "--out", file).exception
    assert isinstance(refused, UsageError)
    assert "--force" in refused.remedy
    assert run(plan, *SMALL, "--out", file, "--force").stdout == ""
    assert run(lint, file, "--radix", 8).exit_code == 0


def test_the_counts_as_json(tmp_path):
    """The shape's numbers, and the file if one was written."""
    file = tmp_path / "wiring.csv"
    document = json.loads(run(plan, "--hosts", 512, "--tiers", 3, "--out", file, "--json").stdout)
    assert document == {
        "hosts": 512,
        "rails": 8,
        "tiers": 3,
        "pods": 4,
        "leaf_switches": 128,
        "spine_switches": 128,
        "core_switches": 64,
        "links": 12288,
        "host_links": 4096,
        "networks": 1,
        "even_pods": True,
        "file": str(file),
    }


def test_separate_networks_are_reported():
    """One tier of several rails is several networks: reported with what to do."""
    assert "4 separate networks" in run(plan, "--hosts", 4, "--rails", 4, "--tiers", 1).stderr


def test_uneven_pods_are_reported():
    """Where no number of pods divides the units, OpenSM will not route it as a fat tree: reported before cables are bought."""
    result = run(plan, "--hosts", 10, "--rails", 1, "--radix", 4, "--tiers", 3)
    assert "falls back from ftree" in result.stderr


@pytest.mark.parametrize("more", [("--tiers", 1, "--hosts", 65), ("--adapters", "a"), ("--hosts-per-rack", 40)])
def test_what_does_not_fit_is_refused(more):
    """Too many hosts, too few names, too low a rack."""
    error = run(plan, "--hosts", 4, *more).exception
    assert isinstance(error, UsageError)
    assert error.remedy


def test_a_folder_that_is_not_there(tmp_path):
    """It is wrong input: the error names the file and the remedy is to make the folder."""
    error = run(plan, *SMALL, "--out", tmp_path / "none/wiring.csv").exception
    assert isinstance(error, UsageError)
    assert (error.where, error.exit_code) == (str(tmp_path / "none/wiring.csv"), 2)


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """A plan that uses port 1 of its first leaf twice, gzipped."""
    rows = run(plan, *SMALL).stdout.splitlines()
    leaf = rows[1].split(",")[0]
    rows[3] = rows[3].replace(f"{leaf},2,", f"{leaf},1,")
    file = tmp_path / "plan.csv.gz"
    file.write_bytes(gzip.compress("\n".join(rows).encode()))
    return file


def test_findings_are_1(spoilt):
    """Each finding has its kind, subjects, lines, cause and action."""
    result = run(lint, spoilt, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["links"], document["devices"], document["not_judged"]) == (16, 8, [])
    (finding,) = document["findings"]
    assert list(finding) == ["kind", "subjects", "where", "cause", "action"]
    assert (finding["kind"], finding["where"]) == ("port_twice", [f"{spoilt}:2", f"{spoilt}:4"])


def test_findings_for_people(spoilt):
    """Cause, lines and remedy; and how many there are."""
    text = run(lint, spoilt).stdout
    assert f"{spoilt}:2, {spoilt}:4" in text
    assert "→ give leaf-a02u01 port 1 one cable" in text
    assert "16 cables between 8 devices: 1 thing to repair" in text


@pytest.mark.parametrize("content", [b"", b"Switch", b"\xff\xfe", gzip.compress(b"x" * 500, mtime=0)[:40]])
def test_what_is_no_plan_is_2(tmp_path, content):
    """A file that is empty, cut off, binary or of another kind."""
    file = tmp_path / "plan.csv"
    file.write_bytes(content)
    error = run(lint, file).exception
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert str(file) in error.where


def test_a_fabric_that_is_none_is_2(tmp_path, spoilt):
    """`--fabric` takes what ibnetdiscover printed, whole."""
    file = tmp_path / "fabric"
    file.write_bytes(b"Switch\n")
    error = run(lint, spoilt, "--fabric", file).exception
    assert isinstance(error, UsageError)
    assert str(file) in error.where


def test_ethernet(tmp_path):
    """`--ethernet` reads an Ethernet plan."""
    file = tmp_path / "ethernet.csv"
    file.write_text("source_device,source_port,destination_device,destination_port\nsw,Ethernet1,node001,bmc\n")
    assert run(lint, "--ethernet", file).exit_code == 0
