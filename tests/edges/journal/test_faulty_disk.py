"""Nothing acknowledged is lost: I/O calls that fail, and power that goes. All calls: tests/soak/test_faulty_disk.py."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.edges.journal.faulty_disk import FAULTS, compiled, failing_calls, power_losses, recorded


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("shim"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_that_fails_loses_nothing(library: Path, tmp_path: Path, fault: str) -> None:
    """Some of the writer's calls fail: each confirmed write is there once; the rest are errors of ours."""
    chance = random.Random(fault)
    numbers = sorted(chance.sample(range(1, 90), 3))
    assert list(failing_calls(library, tmp_path / "fails", numbers, [fault])) == []


def test_power_loss_loses_nothing(library: Path, tmp_path: Path) -> None:
    """After some of the calls, unsynced writes are lost, torn or done, in any mixture."""
    before, calls = recorded(library, tmp_path / "run")
    assert len([call for call in calls if call.kind == "A"]) == 12
    assert {call.kind for call in calls} >= {"W", "S", "A"}
    chance = random.Random(1)
    few = calls[: chance.randint(20, 60)]
    assert list(power_losses(before, few, tmp_path / "crashes", chance, 1)) == []


def test_the_replay_notices_a_disk_that_does_not_sync(library: Path, tmp_path: Path) -> None:
    """Without the syncs of the recording, power loss does lose acknowledged events, and is reported: the test can fail."""
    before, calls = recorded(library, tmp_path / "run")
    lying = [call for call in calls if call.kind != "S"]
    found = power_losses(before, lying, tmp_path / "crashes", random.Random(1), 3)
    assert next(found, "")
