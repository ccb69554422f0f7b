"""What is on the drives of virtual machines, read from outside: where a file has data, and what."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.tests.lab_kit import RunningLab

PIECE = 1 << 20
MARKS = 5


def drives(lab: RunningLab, node: str) -> Mapping[str, Path]:
    """The files of a machine's drives by their serials."""
    folder = Path("/var/lib/clusterctl-lab", lab.name, "metal", node)
    return {file.stem: file for file in sorted(folder.glob("*.raw"))}


def fill(drive: Path, seed: str) -> None:
    """A user's data: pieces at the beginning, at the end, and between them."""
    size = drive.stat().st_size
    with drive.open("r+b") as file:
        for number in range(MARKS):
            piece = hashlib.shake_256(f"{seed}:{number}".encode()).digest(PIECE)
            file.seek((size - PIECE) * number // (MARKS - 1))
            file.write(piece)


def digest(drive: Path) -> str:
    """Over all that is on it and where; zeros are nothing, whether they were written or not."""
    whole = hashlib.sha256()
    with drive.open("rb") as file:
        for start, end in _data(file.fileno(), drive.stat().st_size):
            for place in range(start, end, PIECE):
                piece = os.pread(file.fileno(), min(PIECE, end - place), place)
                if piece.strip(b"\0"):
                    whole.update(f"{place}:{len(piece)}:".encode() + hashlib.sha256(piece).digest())
    return whole.hexdigest()


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole until the end
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end
