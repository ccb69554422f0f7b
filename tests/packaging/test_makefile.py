"""The Makefile: each target stands once, and is a command, not a file."""

from __future__ import annotations

import re
from collections import Counter

from tests.paths import ROOT

TEXT = (ROOT / "Makefile").read_text()


def test_each_target_stands_once_and_is_phony() -> None:
    """`make` would warn, and run the last one of two."""
    targets = Counter(re.findall(r"^([a-z][a-z-]*):", TEXT, re.MULTILINE))
    assert targets["test-wheel"] == 1
    assert [name for name, count in targets.items() if count > 1] == []
    phony = re.search(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == set(targets)
