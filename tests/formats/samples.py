"""Recorded output of real tools, where this checkout has it in a folder next to it."""

from __future__ import annotations

import gzip

import pytest

from tests.paths import SHARED

TOOLS = SHARED / "samples" / "tools"


def sample(name: str) -> str:
    """The text of a recording; skips the test where there is none."""
    path = TOOLS / name
    if not path.exists():
        pytest.skip("the folder of recordings is not here")
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
