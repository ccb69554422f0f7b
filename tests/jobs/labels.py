"""The labelled lines of `data/lines.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "data/lines.txt"


@dataclass(frozen=True)
class Labelled:
    layer: str
    certainty: str
    role: str
    source: str
    line: str


def labelled() -> list[Labelled]:
    found, header = [], ("", "", "", "")
    for line in FILE.read_text().splitlines():
        if line.startswith("@ "):
            layer, certainty, role, source = (part.strip() for part in line[2:].split("|"))
            header = (layer, certainty, role, source)
        elif line and not line.startswith("#"):
            found.append(Labelled(*header, line))
    return found
