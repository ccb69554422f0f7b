"""curtin's log names one line: the one with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.peer_text import has_unseen
from clusterctl.formats.maas.curtin import MAX_LINE, failing_line

CASES = yaml.safe_load(Path(__file__).with_name("data").joinpath("curtin_cases.yml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_failing_line_is_found(case):
    """Of each public failure, the words of the command that failed first."""
    assert failing_line(case["log"]) == case["line"]


@given(st.text(max_size=2000))
def test_any_text_gives_one_bounded_plain_line(text):
    """Whatever the machine writes."""
    line = failing_line(f"Command: ['mkfs']\nExit code: 1\nStderr: error {text}\n{text}")
    assert len(line) <= MAX_LINE
    assert not has_unseen(line)
    assert "\n" not in line
