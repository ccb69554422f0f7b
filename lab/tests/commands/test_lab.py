"""`clusterctl lab …` without a lab: what it lists, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.commands import lab
from lab.tests.lab_kit import clusterctl


def refused(*argv: str) -> ClusterctlError:
    """The error that the command ends with."""
    result = CliRunner().invoke(lab, argv)
    assert isinstance(result.exception, ClusterctlError), result.output
    return result.exception


def listed(*argv: str) -> str:
    """What `lab faults` prints, in a process that knows no secret of another test."""
    result = clusterctl("lab", "faults", *argv)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_faults_are_listed_for_people_and_programs() -> None:
    """The table and the JSON name the same faults."""
    text = listed()
    document = json.loads(listed("--json"))
    names = [fault["name"] for fault in document["faults"]]
    assert {"missing-gpu", "swapped-cable", "never-boots"} <= set(names)
    assert all(name in text for name in names)
    assert all(set(fault) == {"name", "target", "does", "shows"} for fault in document["faults"])


def test_bad_quirks_are_listed_with_the_faults() -> None:
    """All of them, with what they do and who has met it, in the table and in the JSON."""
    text = listed()
    quirks = json.loads(listed("--json"))["quirks"]
    assert [quirk["name"] for quirk in quirks] == [quirk.value for quirk in BmcQuirk]
    assert all(quirk["name"] in text and quirk["does"] and quirk["source"] for quirk in quirks)


@pytest.mark.skipif(os.geteuid() != 0, reason="the lab's folder belongs to root")
@pytest.mark.parametrize(
    "argv", [["status"], ["inject", "never-boots", "node001"], ["heal"], ["power", "node001", "on"]]
)
def test_commands_report_that_no_lab_runs(argv: list[str]) -> None:
    """And how to start one of that name."""
    error = refused(*argv, "--name", "tnone")
    assert isinstance(error, UsageError)
    assert "clusterctl lab up --name tnone" in error.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="needs a user who is not root")
def test_up_without_root_is_refused(tmp_path: Path) -> None:
    """Exit code 3, before anything is made."""
    error = refused("up", "--site", str(tmp_path / "site"))
    assert isinstance(error, EnvironmentBrokenError)
    assert "root" in error.message
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    "argv", [["up", "--metal", "steel"], ["up", "--hosts", "0"], ["up", "--rails", "9"], ["power", "node001", "maybe"]]
)
def test_impossible_options_are_usage_errors(argv: list[str]) -> None:
    """Click refuses them with exit code 2."""
    assert CliRunner().invoke(lab, argv).exit_code == 2


def test_up_prints_its_changes_before_it_finds_that_it_cannot_make_them(tmp_path: Path) -> None:
    """The interface, the folders and the site directory are named; a bad site directory is left alone."""
    (tmp_path / "precious").write_text("mine")
    result = CliRunner().invoke(lab, ["up", "--name", "tnone", "--site", str(tmp_path)])
    assert isinstance(result.exception, ClusterctlError)
    for words in ("tnone-mgmt", "/run/clusterctl-lab/tnone", "/var/lib/clusterctl-lab/tnone", str(tmp_path)):
        assert words in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
