"""Which nodes are in Slurm's files, when they enter and leave, and what of the fabric the files have."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusterctl.fleet.event import Kind
from clusterctl_cli.main import run
from tests.events import new_event
from tests.operations.slurm_site import append, golden, write

CLUSTER = {"name": "west", "controllers": ["slurm1(10.0.0.2)"]}


def names(folder: Path) -> list[str]:
    return re.findall(r"^NodeName=(\S+)", (folder / "slurm.conf").read_text(), re.MULTILINE)


def export(site: Path, folder: Path, *words: str) -> int:
    return run(["export", "slurm", "--site", str(site), "--out", str(folder), *(words or ("--yes",))])


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Path]:
    """A `sinfo` that prints the file; without it Slurm cannot be asked."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/sinfo"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/answer\n")
    program.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}/bin:{before}"
    yield tmp_path / "answer"
    os.environ["PATH"] = before


def test_gold_nodes_are_written_with_their_place_in_the_fabric(tmp_path: Path) -> None:
    """Cores as the BMC reports them, memory less the system's share, GPUs of the SKU, unit and rack as features."""
    site, out = write(tmp_path, CLUSTER, gold=("node001", "node002")), tmp_path / "slurm"
    assert export(site, out) == 0
    text = (out / "slurm.conf").read_text()
    assert (
        "NodeName=node001 NodeAddr=10.0.1.1 Sockets=2 CoresPerSocket=56 ThreadsPerCore=2 RealMemory=1992294 "
        "Gres=gpu:h100:8 Feature=dell-xe9680-h100,rack_A01,gold,unit1 State=UNKNOWN\n"
    ) in text
    assert "SwitchName=unit1 Nodes=node[001-002]\n" in (out / "topology.conf").read_text()
    assert "NodeName=node[001-002] Name=gpu Type=h100 File=/dev/nvidia[0-7]\n" in (out / "gres.conf").read_text()


def test_the_preview_shows_the_difference_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which nodes enter, and each file's lines; a second run finds nothing to write."""
    site, out = write(tmp_path, CLUSTER, gold=("node001",)), tmp_path / "slurm"
    assert export(site, out, "--dry-run") == 0
    printed = capsys.readouterr()
    assert "node001: enters\n" in printed.out
    assert "slurm.conf: is new\n" in printed.out
    assert not out.exists()
    assert export(site, out, "--yes") == 0
    capsys.readouterr()
    assert export(site, out, "--dry-run", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["effects"], document["differences"]) == ([], {})
    append(site, golden("node002", "10.0.1.2"))
    assert export(site, out, "--dry-run", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert {"node": "node002", "text": "enters"} in document["effects"]
    assert "+NodeName=node002 " in document["differences"]["slurm.conf"]
    assert export(site, out, "--dry-run") == 0
    assert "+SwitchName=unit1 Nodes=node[001-002]\n" in capsys.readouterr().err


def test_a_node_in_quarantine_leaves_once_no_job_runs_on_it(tmp_path: Path, slurm: Path) -> None:
    """While Slurm reports it as busy, or cannot be asked, it stays: its jobs would be ended."""
    site, out = write(tmp_path, CLUSTER, gold=("node001", "node002")), tmp_path / "slurm"
    assert export(site, out) == 0
    stop = {"step": "burnin", "cause": "hot", "remedy": "", "verdict": "fail"}
    append(site, [new_event("node", "id-node002", Kind.NODE_QUARANTINED, stop)])
    slurm.write_text("node001|idle|(null)|none\nnode002|draining|(null)|clusterctl:x:y\n")
    assert export(site, out) == 1
    assert names(out) == ["node001", "node002"]
    assert ",gold," not in (out / "slurm.conf").read_text().split("NodeName=node002")[1]
    slurm.write_text("not sinfo\n")
    assert export(site, out) == 1
    assert names(out) == ["node001", "node002"]
    slurm.write_text("node001|idle|(null)|none\nnode002|drained|(null)|clusterctl:x:y\n")
    assert export(site, out) == 0
    assert names(out) == ["node001"]


def test_a_gold_node_that_is_measured_again_stays_but_does_not_enter(tmp_path: Path) -> None:
    """A night takes gold away for half an hour, and is no reason to end a cluster's node; it was proven before.

    A node that was not in the files enters only once it is gold again: it may come from a repair.
    """
    site, out = write(tmp_path, CLUSTER, gold=("node001", "node002")), tmp_path / "slurm"
    assert export(site, out) == 0
    order = {"since": "burnin", "to": "cabled", "was": "gold", "origin": "night", "reason": "14 days old"}
    append(site, [new_event("node", "id-node002", Kind.REVALIDATION_ORDERED, order)])
    assert export(site, out) == 0
    assert names(out) == ["node001", "node002"]
    assert export(site, tmp_path / "other") == 0
    assert names(tmp_path / "other") == ["node001"]


def test_a_held_node_leaves(tmp_path: Path, slurm: Path) -> None:
    """As it leaves the published pool."""
    site, out = write(tmp_path, CLUSTER, gold=("node001", "node002")), tmp_path / "slurm"
    assert export(site, out) == 0
    append(site, [new_event("node", "id-node001", Kind.HOLD_SET, {"reason": "mine", "until": None})])
    slurm.write_text("node001|idle|(null)|none\nnode002|idle|(null)|none\n")
    assert export(site, out) == 0
    assert names(out) == ["node002"]


def test_a_node_with_unknown_cores_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Slurm would use one core of it; the site gives what the BMC does not report."""
    site, out = write(tmp_path, CLUSTER, gold=("node001",)), tmp_path / "slurm"
    append(site, golden("node002", "10.0.1.2", cores=None))
    assert export(site, out) == 1
    assert names(out) == ["node001"]
    assert "hardware.dell-xe9680-h100.cores_per_socket" in capsys.readouterr().out
    own = {**CLUSTER, "hardware": {"dell-xe9680-h100": {"cores_per_socket": 48, "threads_per_core": 1}}}
    site = write(tmp_path / "b", own, gold=())
    append(site, golden("node002", "10.0.1.2", cores=None))
    assert export(site, tmp_path / "own") == 0
    assert "Sockets=2 CoresPerSocket=48 ThreadsPerCore=1" in (tmp_path / "own/slurm.conf").read_text()


def test_nodes_that_the_plan_lacks_share_no_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named in a warning."""
    site, out = write(tmp_path, CLUSTER, gold=("node001", "node002")), tmp_path / "slurm"
    plan = site / "wiring.csv"
    plan.write_text("".join(line for line in plan.read_text().splitlines(keepends=True) if "node002," not in line))
    assert export(site, out) == 0
    assert "warning: nodes that the wiring plan lacks" in capsys.readouterr().err
    assert "SwitchName=unplanned Nodes=node002\n" in (out / "topology.conf").read_text()


WRONG: list[tuple[dict[str, object], str]] = [
    ({**CLUSTER, "settings": {"ReturnToService": "2"}}, "ReturnToService=2"),
    ({**CLUSTER, "settings": {"SlurmdTimeout": "1\nNodeName=x"}}, "one line"),
    ({**CLUSTER, "controllers": []}, "controllers"),
    ({**CLUSTER, "name": "west 1"}, "name"),
]


def test_wrong_settings_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with the field; nothing is written."""
    site = write(tmp_path, CLUSTER, gold=("node001",))
    text = (site / "site.yml").read_text()
    for cluster, message in WRONG:
        (site / "site.yml").write_text(text[: text.index("\nscheduler:")] + "\n" + _section(cluster))
        assert export(site, tmp_path / "out") == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def _section(cluster: dict[str, object]) -> str:
    return yaml.safe_dump({"scheduler": {"kind": "slurm", "cluster": cluster}})


def test_a_cluster_of_no_node_and_a_site_without_slurm_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not start with no node; and other schedulers have no such files."""
    assert export(write(tmp_path, CLUSTER, gold=()), tmp_path / "out") == 2
    assert "no node may serve" in capsys.readouterr().err
    site = write(tmp_path / "b", CLUSTER, gold=("node001",))
    text = (site / "site.yml").read_text()
    (site / "site.yml").write_text(text[: text.index("\nscheduler:")] + "\n")
    assert export(site, tmp_path / "out") == 2
    assert "does not describe its Slurm" in capsys.readouterr().err
