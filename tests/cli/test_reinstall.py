"""`clusterctl install --reinstall`, as an operator types it, up to where machines would be touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from tests.cli.site_of_three import append, run, seq, write
from tests.events import new_event

REINSTALL = ("install", "--reinstall", "n1", "--reason", "new kernel")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """n1 is gold, and clusterctl installed it."""
    folder = write(tmp_path)
    begun = new_event("node", "id-n1", Kind.ACT_INTENDED, {"act": Act.INSTALL_START, "target": "S1"})
    over = new_event("node", "id-n1", Kind.ACT_OBSERVED, {"act": Act.INSTALL_START, "message": "installed"})
    append(folder, [begun, over])
    return folder


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
