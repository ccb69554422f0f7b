"""A scheduler by a site's own commands, and by a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.scheduler import CommandScheduler, ListedScheduler
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Use, is_returnable
from tests.steps.fakes import FixedClock

REASON = "clusterctl:nightly:r1"
TAKE = """#!/bin/sh
[ "$1" = busy ] && { echo "job 7 runs on it" >&2; exit 1; }
[ "$1" = odd ] && exit 4
echo "$1 $2" >> "$HELD"
"""
GIVE = """#!/bin/sh
grep -v "^$1 " "$HELD" > "$HELD.new"; mv "$HELD.new" "$HELD"
"""


def scheduler(folder: Path, idle: str = "printf 'n1\\nn2\\n'") -> CommandScheduler:
    held = folder / "held"
    held.touch()
    for name, text in {"take": TAKE, "give": GIVE}.items():
        (folder / name).write_text(text.replace('"$HELD', f'"{held}'))
        (folder / name).chmod(0o755)
    return CommandScheduler(
        FixedClock(),
        Origin.REAL,
        ("sh", "-c", idle),
        (str(folder / "take"),),
        (str(folder / "give"),),
        ("cat", str(held)),
    )


def soon() -> Deadline:
    return Deadline.after(60)


def test_a_sites_commands_take_and_give_back(tmp_path: Path) -> None:
    """Exit code 1 refuses one node, in the command's own words; what was taken is held with our reason."""
    found = scheduler(tmp_path)
    assert {name: node.use for name, node in found.look(soon()).value.items()} == {"n1": Use.IDLE, "n2": Use.IDLE}
    assert found.take(["n1", "busy"], REASON, soon()) == {"busy": "job 7 runs on it"}
    assert found.look(soon()).value["n1"].ours
    assert found.give_back(["n1", "n2"], soon()) == {"n2": "it is not kept out by clusterctl:…"}
    assert not (tmp_path / "held").read_text()


def test_a_drain_by_commands_takes_each_node_once_it_has_no_work(tmp_path: Path) -> None:
    """One with work is asked for again later; what is held already is not taken twice, another owner's is refused."""
    found = scheduler(tmp_path)
    (tmp_path / "held").write_text("n2 fan\n")
    first = found.drain(["n1", "n2", "busy"], REASON, soon())
    assert (first.out, first.waiting) == ({"n1"}, {"busy": "job 7 runs on it"})
    assert first.refused == {"n2": "it is kept out: fan"}
    assert found.drain(["n1"], REASON, soon()).out == {"n1"}
    assert (tmp_path / "held").read_text().count("n1 ") == 1


def test_a_listed_node_needs_no_drain() -> None:
    """Nothing else can be taken for idle."""
    found = ListedScheduler(frozenset({"n1"})).drain(["n1", "n2"], REASON, soon())
    assert (found.out, found.refused) == ({"n1"}, {"n2": "the site does not list it as idle"})


def test_another_exit_code_is_trouble_not_an_answer(tmp_path: Path) -> None:
    """The result is unknown: the error names the command."""
    with pytest.raises(EdgeError, match="exit status 4") as caught:
        scheduler(tmp_path).take(["odd"], REASON, soon())
    assert caught.value.where.endswith("take odd clusterctl:nightly:r1")


@pytest.mark.parametrize("idle", ["exit 3", "echo 'n1 n2'"])
def test_the_list_of_idle_nodes_must_be_understood(tmp_path: Path, idle: str) -> None:
    """A command that fails, or prints something else than names, makes no node idle."""
    with pytest.raises(EdgeError):
        scheduler(tmp_path, idle).look(soon())


def test_a_lists_nodes_are_idle_and_no_others() -> None:
    """By the site's setting; there is no scheduler to take them from."""
    listed = ListedScheduler(frozenset({"n1"}))
    assert listed.look(soon()).value["n1"].use is Use.IDLE
    assert listed.take(["n1", "n2"], REASON, soon()) == {"n2": "the site does not list it as idle"}
    assert listed.give_back(["n1"], soon()) == {}


@pytest.mark.parametrize(
    ("reason", "lifted"),
    [
        ("clusterctl:nightly:20260101T000000-beef", True),
        ("clusterctl:nightly:20260101T000000-beef : reboot complete", True),
        ("clusterctl:maintain:driver-580", True),
        ("clusterctl:cable-burn:20260101T000000-beef", True),
        ("clusterctl:revalidate:20260101T000000-beef", True),
        ("clusterctl:gpu_ecc:7", True),
        ("clusterctl:gpu_ecc:20261128T181500Z", False),
        ("clusterctl:gpu_ecc:20261128T181500Z : reboot complete", False),
        ("clusterctl:job:run-20261128T120000-beef", False),
        ("clusterctl: by ann", False),
        ("clusterctl:fan: by ann", False),
        ("", False),
    ],
)
def test_which_drains_a_run_may_lift(reason: str, lifted: bool) -> None:
    """Those that a run has set for its own work, and a night's failure that is gold again; none that names a fault."""
    assert is_returnable(reason) is lifted
