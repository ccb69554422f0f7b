"""`clusterctl cable verify`: exit codes, and the two faces of its answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.commands.cable_recheck import recheck
from clusterctl_cli.commands.cable_verify import verify

DATA = Path(__file__).parents[1] / "formats/infiniband/data"
PLAN, FABRIC = DATA / "two_hosts.csv", DATA / "two_hosts.ibnetdiscover"


def run(*args: object):
    return CliRunner().invoke(verify, [str(arg) for arg in args])


@pytest.fixture
def as_planned(tmp_path: Path) -> Path:
    """The recorded fabric with all host links at full width."""
    file = tmp_path / "fabric.txt"
    file.write_text(FABRIC.read_text().replace("2xNDR", "4xNDR"))
    return file


def test_clean_is_0(as_planned):
    """As planned: exit code 0, and the counts."""
    result = run("--plan", PLAN, "--fabric", as_planned, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "links_planned": 2,
        "links_observed": 2,
        "links_right": 2,
        "findings": [],
        "moves": 0,
        "devices_to_visit": 0,
        "warnings": [],
    }


def test_findings_are_1():
    """A slow link: exit code 1, one finding with all its keys."""
    result = run("--plan", PLAN, "--fabric", FABRIC, "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert list(finding) == [
        "kind",
        "subjects",
        "cause",
        "action",
        "links",
        "moves",
        "tie",
        "nodes",
        "ports",
        "rack",
    ]
    assert (finding["kind"], finding["nodes"], finding["rack"]) == ("down_width", ["node002"], "A01")
    assert finding["ports"][0] == {"device": "node002", "port": "mlx5_0"}


def test_by_rack_for_people():
    """People read the work by rack, one line of action for each cause."""
    result = run("--plan", PLAN, "--fabric", FABRIC)
    assert result.exit_code == 1
    assert "rack A01\n" in result.stdout
    assert "→ rack A01 U12 node002 mlx5_0: clean and reseat" in result.stdout
    assert "2 of 2 planned cables are right, 2 observed: 1 finding" in result.stdout


def test_gzipped(tmp_path, as_planned):
    """Either file may be gzipped."""
    packed = tmp_path / "plan.csv.gz"
    packed.write_bytes(gzip.compress(PLAN.read_bytes()))
    assert run("--plan", packed, "--fabric", as_planned).exit_code == 0


@pytest.mark.parametrize(
    ("plan", "fabric"),
    [
        (PLAN, b""),
        (PLAN, b"Switch"),
        (PLAN, b"\xff\xfe"),
        (PLAN, gzip.compress(b"x" * 500, mtime=0)[:40]),
        (FABRIC, b""),
    ],
)
def test_bad_input_is_2(tmp_path, plan, fabric):
    """A file that is empty, cut off, binary or of another kind is wrong usage: exit code 2, with the file's name."""
    file = tmp_path / "fabric"
    file.write_bytes(fabric)
    error = run("--plan", plan, "--fabric", file).exception
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert str(file) in error.where or str(plan) in error.where
    assert error.remedy


def test_missing_file_is_2(tmp_path):
    """A file that is not there is wrong usage."""
    assert run("--plan", tmp_path / "none", "--fabric", FABRIC).exit_code == 2


def test_without_a_plan_the_rule_is_inferred_or_reported_as_missing(as_planned):
    """No --plan: the answer names the inferred rules, and two hosts, too few for any, are not passed as right."""
    result = run("--fabric", as_planned, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    limits = document["inferred"].pop("limits")
    assert document["inferred"] == {"rules": [], "judged": 0, "not_judged": 2}
    assert "first or last switch" in limits[0]
    assert [finding["kind"] for finding in document["findings"]] == ["no_rule"]
    output = run("--fabric", as_planned).stdout
    assert "no --plan" in output
    assert limits[0] in output


def test_guids_identify_the_devices(tmp_path, as_planned):
    """An adapter without a useful description is known by its GUID, given as a CSV."""
    text = as_planned.read_text()
    guid = text.split('"H-')[1][:16]
    name = next(line for line in text.splitlines() if line.startswith("Ca") and guid in line).split('"')[3]
    as_planned.write_text(text.replace(name, "MT4129 ConnectX7"))
    guids = tmp_path / "guids.csv"
    host, hca = name.split()
    guids.write_text(f"guid,host,hca\n0x{guid},{host},{hca}\n")
    assert run("--plan", PLAN, "--fabric", as_planned).exit_code == 1
    assert run("--plan", PLAN, "--fabric", as_planned, "--guids", guids).exit_code == 0


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ":1"),
        ("guid,node\n", ":1"),
        ("guid,host\nxyz,node001\n", ":2 guid"),
        ("guid,host\n0x1,\n", ":2 host"),
        ("guid,host\n0x1,a\n1,b\n", ":3 guid"),
        ("guid,host\n0x1\n", ":2"),
    ],
)
def test_bad_guids_are_2(tmp_path, text, where):
    """A GUID list that is wrong is refused with its line and column."""
    file = tmp_path / "guids.csv"
    file.write_text(text)
    error = run("--plan", PLAN, "--fabric", FABRIC, "--guids", file).exception
    assert isinstance(error, UsageError)
    assert error.where.endswith(where)


def test_recheck(as_planned):
    """After the work: what is repaired, left and new; exit code 0 once all is as planned."""
    arguments = ["--plan", str(PLAN), "--before", str(FABRIC), "--after"]
    repaired = CliRunner().invoke(recheck, [*arguments, str(as_planned), "--json"])
    assert repaired.exit_code == 0
    document = json.loads(repaired.stdout)
    assert [finding["kind"] for finding in document["repaired"]] == ["down_width"]
    assert (document["left"], document["new"], document["moves"]) == ([], [], 0)
    left = CliRunner().invoke(recheck, [*arguments, str(FABRIC)])
    assert left.exit_code == 1
    assert "0 repaired, 1 left, 0 new" in left.stdout
