"""`clusterctl install --reinstall`, as an operator types it, up to where machines would be touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.node import Stage
from clusterctl.operations import reinstall
from clusterctl.operations.context import Invocation, open_site
from clusterctl.operations.operation import Control
from clusterctl.operations.reinstall import ReinstallRequest
from tests.cli.nights import SilentOutside
from tests.cli.site_of_three import append, run, seq, write
from tests.events import advances, new_event

REINSTALL = ("install", "--reinstall", "n1", "--reason", "new kernel")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """n1 is gold, and clusterctl installed it."""
    folder = write(tmp_path)
    append(folder, installed())
    return folder


def installed() -> list[NewEvent]:
    begun = new_event("node", "id-n1", Kind.ACT_INTENDED, {"act": Act.INSTALL_START, "target": "S1"})
    return [begun, new_event("node", "id-n1", Kind.ACT_OBSERVED, {"act": Act.INSTALL_START, "message": "installed"})]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (REINSTALL, "it may run a job"),
        (("install", "--reinstall", "n2"), "never installed it"),
        (("install", "--reinstall", "n9"), "n9"),
        (("install", "--reason", "new kernel"), "goes with --reinstall"),
        (("install", "--from-pool"), "goes with --reinstall"),
        ((*REINSTALL, "--from-pool", "--limit", "n2"), "both choose nodes"),
    ],
)
def test_what_is_refused(site: Path, words: tuple[str, ...], expected: str) -> None:
    """In words, with a remedy, and nothing is written."""
    before = seq(site)
    with pytest.raises(UsageError, match=expected) as caught:
        run(site, *words, "--yes")
    assert caught.value.remedy
    assert seq(site) == before


def test_a_dry_run_prints_what_would_be_overwritten(site: Path) -> None:
    """Machine, disk, pool; nothing is asked of any BMC, and nothing is written."""
    before = seq(site)
    result = run(site, *REINSTALL, "--from-pool", "--dry-run").output
    assert "n1: rack A01 U4, serial S1, gold: the OS on its disk DISK-S1 is overwritten" in result
    assert "it leaves the gold pool" in result
    assert seq(site) == before


def test_a_run_that_is_begun_again_overwrites_the_disk_once(site: Path) -> None:
    """Its worker was lost after the install, before it had written the run's end."""
    context = open_site(site, Invocation("ann", "install", "r-1"))
    values = {"reason": "new kernel", "serial": "S1", "root_disk": "DISK-S1", "was": "gold"}
    ordered = new_event("node", "id-n1", Kind.REINSTALL_ORDERED, values)
    context.journal.append([ordered, *installed(), *advances("id-n1", "gold", Stage.DISCOVERED)])
    again = replace(context, connect=lambda site, _access: SilentOutside(site))
    request = ReinstallRequest(node="n1", reason="new kernel", from_pool=True)
    assert reinstall.run(again, request, Control()).exit_code == 0
    kinds = [event.kind for event in context.journal.history(Stream.NODE, "id-n1")]
    assert kinds.count(Kind.REINSTALL_ORDERED) == 1
    assert context.node("n1").stage is Stage.GOLD
    with pytest.raises(EdgeError):  # another run orders it: no BMC answers here
        reinstall.run(replace(again, run="r-2"), request, Control())
