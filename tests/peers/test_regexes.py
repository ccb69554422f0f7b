"""Regular expressions take linear time: no text of a peer keeps the controller busy."""

from __future__ import annotations

import re

import pytest

from tests.peers import regexes

OURS = {
    "clusterctl.edges.ansible.host_transport.portable.BRACES": "reads our own roles",
    "clusterctl.formats.wiring.ports._BOARD": "reads names of at most 100 characters",
    "clusterctl.formats.wiring.ports._ADAPTER": "reads names of at most 100 characters",
    "clusterctl_cli.error_output._HINT": "reads click's own messages",
    "clusterctl.cabling.pictures.tiers._NUMBER": "reads names of at most 64 characters: a description in InfiniBand has 64 bytes",
}
"""Expressions whose texts are short or ours, and why."""
LINEAR_S = 0.05
"""Seconds of processor time for 4,000 characters: linear ones took at most 0.013, those that were repaired up to 8."""
FOUND = [item for item in regexes.used(("clusterctl.formats", "clusterctl_burnin")) if item[0] not in OURS]


@pytest.mark.parametrize(("name", "pattern", "method"), FOUND, ids=[f"{name}-{method}" for name, _, method in FOUND])
def test_linear(name: str, pattern: re.Pattern[str], method: str) -> None:
    """By the method that its module calls, for texts that are made of its own parts."""
    slow = (text for text in regexes.attacks(pattern) if regexes.seconds(pattern, method, text) > LINEAR_S)
    twice = next((text for text in slow if regexes.seconds(pattern, method, text) > LINEAR_S), None)
    assert twice is None, f"{name} takes long for {twice[:80]!r}"
