"""The journal on a disk that fails, whole: each I/O call of a run fails in each way, and power goes after each call."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.edges.journal.faulty_disk import FAULTS, compiled, failing_calls, power_losses, recorded

CRASHES = 20
"""Power losses after each call, each with another mixture of lost, torn and done writes."""


@pytest.mark.soak
def test_no_failing_call_and_no_power_loss_loses_what_was_acknowledged(tmp_path: Path) -> None:
    library = compiled(tmp_path)
    before, calls = recorded(library, tmp_path / "run")
    numbers = range(1, len([call for call in calls if call.kind != "A"]) + 1)
    found = list(failing_calls(library, tmp_path / "fails", numbers, list(FAULTS)))
    print(f"\n{len(numbers)} calls, each failed in {len(FAULTS)} ways: {len(found)} losses")
    lost = list(power_losses(before, calls, tmp_path / "crashes", random.Random(20), CRASHES))
    print(f"{len(calls) * CRASHES} power losses: {len(lost)} losses")
    assert found == []
    assert lost == []
