"""burnin script: the probes' program as a file, run on a node in any way; its bare answer is judged by whose it is."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.judge import SERIAL, recording
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Serial
from clusterctl_burnin.probe import parse_readings
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_cli.main import run as command
from tests.burnin import kit
from tests.cli.site_of_three import append, write
from tests.cli.test_burnin_export import SKU
from tests.events import new_event

PROBES = {probe.name for check in shipped_suite().checks for probe in check.probes}


def bare(folder: Path, name: str) -> Path:
    """A healthy node's answer, as it would print it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(recording(name, random.Random(1))["readings"]))
    return folder


def judged(folder: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = command(["burnin", "judge", str(folder), "--site", str(site), "--json"])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_program_asks_every_probe(tmp_path: Path) -> None:
    """Without a site, too: run here, each probe of the shipped checks has an answer, or reports that its tool is missing."""
    file = tmp_path / "ask.py"
    assert command(["burnin", "script", "--output", str(file), "--site", str(tmp_path)]) == 0
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=600, check=True)
    assert parse_readings(ran.stdout).probes.keys() == PROBES


def test_no_file_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator may be about to run it."""
    file = tmp_path / "ask.py"
    file.write_text("mine")
    assert command(["burnin", "script", "--output", str(file), "--site", str(tmp_path)]) == 2
    assert str(file) in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_a_bare_answer_is_held_to_what_the_journal_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its serial number, its SKU and its inventory; the same answer under another node's name is another machine's."""
    site = write(tmp_path)
    known = {"inventory": inventory_to_data(kit.INVENTORY), "sku": SKU, "root_disk": "D"}
    append(site, [new_event("node", f"id-{name}", Kind.NODE_IDENTIFIED, known) for name in ("n1", "n2")], ())
    code, out, _ = judged(bare(tmp_path / "named", "n1"), site, capsys)
    (node,) = json.loads(out)["nodes"]
    identity = [finding["verdict"] for finding in node["findings"] if finding["check"] == "identity"]
    assert kit.INVENTORY.serial == Serial(SERIAL)
    assert (node["name"], identity, code) == ("n1", ["pass"], 0 if node["verdict"] in ("pass", "warn") else 1)


@pytest.mark.parametrize("name", ["n3", "stranger"])
def test_an_answer_of_an_unknown_node_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that the journal has not discovered, one that the site does not name: exit code 2, and the name."""
    code, out, err = judged(bare(tmp_path / "named", name), write(tmp_path), capsys)
    assert (code, out) == (2, "") or name in out
    assert code == 2
    assert name in out + err


def test_a_bare_answer_needs_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else identifies the node."""
    code, out, err = judged(bare(tmp_path / "named", "n1"), tmp_path / "named", capsys)
    assert code == 2
    assert "--site" in out + err
    assert "n1.json" in out + err
