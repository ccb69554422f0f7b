"""A part's own history, wherever the part was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from tests.cli.site_of_three import append, run, write
from tests.events import new_event

DISK = "DISK-S1"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Drive DISK-S1 of n1 was in n3 before."""
    folder = write(tmp_path)
    where = {"component": "drive", "slot": "0", "model": "M.2", "other": ""}
    append(
        folder,
        [
            new_event("part", DISK, Kind.PART_SEEN, {**where, "node": "n3"}),
            new_event("part", DISK, Kind.PART_GONE, {**where, "node": "n3", "other": "DISK-S9"}),
            new_event("part", DISK, Kind.PART_SEEN, {**where, "node": "n1"}),
            new_event(
                "node", "id-n1", Kind.PART_REPLACED, {"component": "drive", "slot": "0", "old": "X", "new": DISK}
            ),
        ],
    )
    return folder


@pytest.mark.parametrize("name", ["0", DISK])
def test_by_slot_and_by_serial(site: Path, name: str) -> None:
    """Its whole way, in order, in the node that it is in now."""
    lines = run(site, "nodes", "n1", "--part", name).stdout.splitlines()
    assert lines[0] == f"0, serial {DISK}"
    messages = ["seen in n3, drive 0", "gone from n3, drive 0, DISK-S9 is there", "seen in n1, drive 0"]
    assert [words for line, words in zip(lines[2:], messages, strict=True) if line.endswith(words)] == messages


def test_as_json(site: Path) -> None:
    """Kind and data of each event; the node's own JSON has its inventory."""
    found = json.loads(run(site, "nodes", "n1", "--part", DISK, "--json").stdout)
    assert (found["serial"], [event["kind"] for event in found["history"]]) == (
        DISK,
        ["part.seen", "part.gone", "part.seen"],
    )
    (node,) = json.loads(run(site, "nodes", "n1", "--json").stdout)["nodes"]
    assert node["inventory"]["drives"][0]["serial"] == DISK


def test_node_prints_what_was_replaced(site: Path) -> None:
    """In its own history."""
    assert "drive 0: DISK-S1 for X" in run(site, "nodes", "n1").stdout


def test_a_part_without_serial(site: Path) -> None:
    """It has no history, and the message has the reason."""
    with pytest.raises(UsageError, match="no reading names the serial of fan 3"):
        run(site, "nodes", "n1", "--part", "fan 3")
