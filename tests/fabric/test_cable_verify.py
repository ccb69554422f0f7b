"""`clusterctl cable verify`: exit codes, and the two faces of its answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.cli.commands.cable_verify import verify
from clusterctl.fleet.errors import UsageError

DATA = Path(__file__).parent / "data"
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
        "verdict": "pass",
        "summary": {"planned": 2, "observed": 2, "right": 2},
        "findings": [],
    }


def test_findings_are_1():
    """A slow link: exit code 1, one finding with all its keys."""
    result = run("--plan", PLAN, "--fabric", FABRIC, "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert list(finding) == ["kind", "cause", "action", "nodes", "ports", "rack"]
    assert (finding["kind"], finding["nodes"], finding["rack"]) == ("slow_link", ["node002"], "A01")
    assert finding["ports"][0] == {"device": "node002", "port": "mlx5_0"}


def test_by_rack_for_people():
    """People read the work by rack, one line of action for each cause."""
    result = run("--plan", PLAN, "--fabric", FABRIC)
    assert result.exit_code == 1
    assert "rack A01\n" in result.stdout
    assert "→ rack A01 U12 node002 mlx5_0: clean and reseat" in result.stdout
    assert "2 of 2 planned cables are right, 2 observed: 1 thing to mend" in result.stdout


def test_gzipped(tmp_path, as_planned):
    """Either file may be gzipped."""
    packed = tmp_path / "plan.csv.gz"
    packed.write_bytes(gzip.compress(PLAN.read_bytes()))
    assert run("--plan", packed, "--fabric", as_planned).exit_code == 0


@pytest.mark.parametrize(
    ("plan", "fabric"),
    [(PLAN, b""), (PLAN, b"Switch"), (PLAN, b"\xff\xfe"), (PLAN, gzip.compress(b"x" * 500)[:40]), (FABRIC, b"")],
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
