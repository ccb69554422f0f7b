"""What sinfo prints, as Slurm 22.05 did."""

from __future__ import annotations

import pytest

from clusterctl.edges.scheduler.slurm import occupancy
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.slurm import SlurmNode, parse_sinfo
from clusterctl.ports.scheduler import Use

TEXT = """\
c1|idle*|(null)|none
c2|draining|h100,gold|clusterctl:nightly:x y|z
c2|draining|h100,gold|clusterctl:nightly:x y|z
"""


def test_nodes_are_read_with_signs_features_and_reasons() -> None:
    """A reason may hold the sign between columns; a node of two partitions stands once."""
    assert parse_sinfo(TEXT) == {
        "c1": SlurmNode("idle", "*"),
        "c2": SlurmNode("draining", "", ("h100", "gold"), "clusterctl:nightly:x y|z"),
    }


@pytest.mark.parametrize("text", ["c1|idle\n", "|idle|a|b\n", "sinfo: error: no\n", "c1||a|b\n"])
def test_what_is_not_understood_is_an_error_with_its_line(text: str) -> None:
    """Never a node less."""
    with pytest.raises(ParseError) as caught:
        parse_sinfo(f"c0|idle|(null)|none\n{text}")
    assert caught.value.where == "line 2"


@pytest.mark.parametrize(
    ("state", "sign", "use"),
    [
        ("idle", "", Use.IDLE),
        ("idle", "*", Use.UNKNOWN),
        ("idle", "~", Use.UNKNOWN),
        ("mixed", "", Use.BUSY),
        ("completing", "", Use.BUSY),
        ("draining", "", Use.BUSY),
        ("drained", "*", Use.OUT),
        ("down", "*", Use.OUT),
        ("reserved", "", Use.OUT),
        ("blocked", "", Use.UNKNOWN),
    ],
)
def test_only_a_plain_idle_is_idle(state: str, sign: str, use: Use) -> None:
    """A state that we do not know is not one that we may act on."""
    assert occupancy(SlurmNode(state, sign)).use is use
