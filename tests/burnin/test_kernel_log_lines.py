"""The check kernel_log on labelled lines of real logs: `data/kernel_log/lines`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.burnin.kernel_lines import LABELS, LINES, cases

FILES = sorted(LINES.glob("*.txt"))


def test_there_are_enough_cases_each_with_a_source() -> None:
    """At least 600 cases, 300 of them fatal; a label is one of four."""
    found = [case for file in FILES for case in cases(file)]
    labels = Counter(case.label for case in found)
    assert set(labels) == set(LABELS)
    assert labels["fail"] >= 300
    assert sum(labels.values()) >= 600
    assert all(len(case.source) > 5 for case in found)
    twice = [text for text, times in Counter(case.messages for case in found).items() if times > 1]
    assert twice == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_case_has_the_verdict_of_its_label(file: Path) -> None:
    """And names the part, where the case names it."""
    mistakes = [mistake for case in cases(file) if (mistake := case.mistake())]
    assert mistakes == []
