"""Fingerprints of drives: the parts that both sides agreed on, of all drives at once, within the time limit."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusterctl_burnin.node.fingerprints import BLOCK, MIB, fingerprint, regions
from clusterctl_burnin.package_data import text_of

SIZE = 3 * 1024 * MIB + 123 * 512


def drive(path: Path, size: int) -> Path:
    """A sparse file with something in each place that is read, and around it."""
    with path.open("wb") as file:
        file.truncate(size)
        for at in range(0, size, 64 * MIB):
            file.seek(at)
            file.write(f"block at {at}".encode())
    return path


def run(paths: list[Path], seconds: float = 30.0) -> dict[str, dict[str, str]]:
    """As the controller calls it."""
    script = f"{text_of('node/fingerprints.py')}\n\nmain({[str(path) for path in paths]!r}, {seconds})\n"
    command = [sys.executable, "-I", "-"]
    ran = subprocess.run(command, input=script, capture_output=True, text=True, timeout=600, check=True)
    return dict(json.loads(ran.stdout))


def test_what_is_read_of_a_large_drive() -> None:
    """First and last MiB, and 14 blocks on 4 KiB boundaries between them, in this order."""
    first, last, *between = regions(SIZE)
    assert (first, last) == ((0, MIB), (SIZE - MIB, MIB))
    assert between == [(i * (SIZE // 15) // 4096 * 4096, BLOCK) for i in range(1, 15)]
    assert list(regions(32 * MIB)) == [(0, 32 * MIB)]


def test_the_same_as_reading_it_with_other_tools(tmp_path: Path) -> None:
    """SHA-256 over what `dd` reads of the same regions, as an installer without Python does it."""
    path = drive(tmp_path / "disk", SIZE)
    digest = hashlib.sha256()
    for offset, length in regions(SIZE):
        argv = ["dd", f"if={path}", "iflag=skip_bytes,count_bytes", f"skip={offset}", f"count={length}", "status=none"]
        digest.update(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert fingerprint(str(path)) == digest.hexdigest()


def test_every_place_counts(tmp_path: Path) -> None:
    """One byte in any of the regions changes it; a byte elsewhere does not."""
    path = drive(tmp_path / "disk", SIZE)
    before = fingerprint(str(path))
    for offset, length in regions(SIZE):
        at = offset + length // 2
        with path.open("r+b") as file:
            file.seek(at)
            kept = file.read(1)
            file.seek(at)
            file.write(b"!")
        assert fingerprint(str(path)) != before, at
        with path.open("r+b") as file:
            file.seek(at)
            file.write(kept)
    with path.open("r+b") as file:
        file.seek(2 * MIB)
        file.write(b"!")
    assert fingerprint(str(path)) == before


@pytest.mark.parametrize("size", [0, 1, 4096, 32 * MIB])
def test_a_small_drive_is_read_whole(tmp_path: Path, size: int) -> None:
    """Up to 32 MiB."""
    path = drive(tmp_path / "disk", size)
    assert fingerprint(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_many_drives_and_one_that_is_gone(tmp_path: Path) -> None:
    """Each has its answer; a drive that cannot be read has the reason."""
    paths = [drive(tmp_path / f"disk{n}", SIZE + n) for n in range(4)]
    result = run([*paths, tmp_path / "gone"])
    assert [result[str(path)] for path in paths] == [{"fingerprint": fingerprint(str(path))} for path in paths]
    assert result[str(tmp_path / "gone")] == {"error": "No such file or directory"}


def test_a_drive_that_does_not_answer_is_left_behind(tmp_path: Path) -> None:
    """The others are reported in time (a pipe without a writer never opens)."""
    os.mkfifo(tmp_path / "stuck")
    path = drive(tmp_path / "disk", MIB)
    began = time.monotonic()
    result = run([tmp_path / "stuck", path], seconds=2.0)
    assert time.monotonic() - began < 200
    assert "did not answer" in result[str(tmp_path / "stuck")]["error"]
    assert result[str(path)]["fingerprint"]
