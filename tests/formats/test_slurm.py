"""What sinfo and scontrol print, as Slurm 22.05 did."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusterctl.edges.scheduler.slurm import occupancy
from clusterctl.edges.scheduler.slurm_reboots import node_boot
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.slurm import SlurmNode, parse_shown_nodes, parse_sinfo
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


SHOWN = (
    "NodeName={} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=1 Port=24033 Version=22.05.8 OS=Linux 6.1 #1 SMP  "
    "RealMemory=1 Sockets=1 Boards=1 State={} ThreadsPerCore=1 TmpDisk=0 Partitions=main  BootTime={} "
    "SlurmdStartTime=2026-11-28T14:16:36 CfgTRES=cpu=1 AllocTRES= ExtSensorsTemp=n/s {}\n"
)
BOOT = datetime(2026, 11, 28, 14, 16, 35, tzinfo=UTC)


@pytest.mark.parametrize(
    ("state", "use", "pending", "down"),
    [
        ("IDLE", Use.IDLE, False, False),
        ("IDLE+DRAIN+REBOOT_REQUESTED", Use.OUT, True, False),
        ("ALLOCATED+DRAIN", Use.BUSY, False, False),
        ("DOWN+DRAIN+REBOOT_ISSUED", Use.OUT, True, True),
        ("DOWN", Use.OUT, False, True),
        ("REBOOT^", Use.UNKNOWN, True, False),
        ("UNKNOWN", Use.UNKNOWN, False, False),
    ],
)
def test_how_far_a_reboot_is(state: str, use: Use, pending: bool, down: bool) -> None:
    """By the flags of the state; a drained node with jobs is busy."""
    (node,) = parse_shown_nodes(SHOWN.format("c1", state, "2026-11-28T14:16:35", "")).values()
    seen = node_boot(node)
    assert (seen.use, seen.pending, seen.down, seen.answers, seen.booted) == (use, pending, down, True, BOOT)


def test_a_silent_node_and_a_reason_with_blanks() -> None:
    """The reason is without its author; a node that never booted for Slurm has no time."""
    reason = "Reason=clusterctl:gpu:x : reboot issued : reboot complete [root@2026-11-28T14:16:36]"
    nodes = parse_shown_nodes(
        SHOWN.format("c1", "DOWN", "2026-11-28T14:16:35", reason) + SHOWN.format("c2", "DOWN*", "None", "")
    )
    one, other = node_boot(nodes["c1"]), node_boot(nodes["c2"])
    assert (one.reason, one.ours, one.answers) == ("clusterctl:gpu:x : reboot issued : reboot complete", True, True)
    assert (other.reason, other.answers, other.booted) == ("", False, None)


def test_a_node_without_a_state_is_an_error_with_its_line() -> None:
    """Never a node less."""
    with pytest.raises(ParseError) as caught:
        parse_shown_nodes(SHOWN.format("c1", "IDLE", "None", "") + "NodeName=c2 Arch=x86_64\n")
    assert caught.value.where == "line 2"
