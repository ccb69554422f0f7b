"""subiquity's reports become words, whatever comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.edges.pxe.answers import message_of
from clusterctl.edges.pxe.report import LONGEST


def report(**changes: Any) -> str:
    usual = {
        "name": "subiquity/Install/install/curtin_install",
        "description": "",
        "event_type": "start",
        "origin": "curtin",
        "timestamp": 1767225600.5,
        "level": "INFO",
    }
    return json.dumps(usual | changes)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (report(), "start subiquity/Install/install/curtin_install"),
        (
            report(event_type="finish", name="subiquity/Late/run", result="FAIL", description="late"),
            "finish subiquity/Late/run: FAIL: late",
        ),
        (report(event_type="finish", result="SUCCESS"), ""),
        (report(name="subiquity/Meta/status_GET"), ""),
        (report(name="a", description="umask 077\nmkdir -p /run"), "start a: umask 077"),
        (report(name="a", description="POST http://10.9.0.1/t/0123456789abcdef0123/done"), "start a: POST http://10.9.0.1/t/…/done"),
        (report(name="a", description="bell\x07\x1b[31m"), "start a: bell  [31m"),
        (report(name=["a"], description=None), "start"),
        ("[]", ""),
        ("", ""),
        ("{}", ""),
        ("[" * 100_000, ""),
    ],
)  # fmt: skip
def test_one_line_of_words(body: str, words: str) -> None:
    """What happened, where, how it ended; never a token, never what a terminal would obey."""
    assert message_of(body) == words


@given(st.one_of(st.binary(), st.text().map(lambda text: report(name=text, description=text * 40))))
def test_whatever_comes_it_is_one_line_of_bounded_length(body: bytes | str) -> None:
    """Reports are best effort, and anyone on the provisioning network who knows a token may send them."""
    words = message_of(body)
    assert len(words) <= LONGEST
    assert words.isprintable()
