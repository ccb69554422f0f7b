"""Errors that come with the first load after the fault: none before it, and none of a load before the fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clusterctl_lab.emulators.host_tools.host import loaded


def test_a_load_counts_from_the_last_change_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked, then the machine changes, then marked again."""
    facts = tmp_path / "machine.json"
    facts.write_text("{}")
    os.utime(facts, (1000, 1000))
    monkeypatch.setattr(loaded, "FOLDER", str(tmp_path))
    monkeypatch.setattr(loaded, "FACTS", str(facts))
    assert not loaded.loaded(loaded.GPUS)
    loaded.mark(loaded.GPUS)
    assert loaded.loaded(loaded.GPUS)
    assert not loaded.loaded(loaded.FABRIC)
    later = (tmp_path / "clusterctl-lab-gpus").stat().st_mtime + 10
    os.utime(facts, (later, later))
    assert not loaded.loaded(loaded.GPUS)
    os.utime(facts, (1000, 1000))
    loaded.mark(loaded.GPUS)
    assert loaded.loaded(loaded.GPUS)
