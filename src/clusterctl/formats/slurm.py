"""Slurm's nodes: what they do, why they are out, and when they booted, from `sinfo` and `scontrol show node`.

Sources: sinfo(1), scontrol(1), https://slurm.schedmd.com/man_index.html. The columns of sinfo are asked for by name, so
that they are the same from 22.05 on; `--json` changed its schema in between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from clusterctl.fleet.errors import ParseError

COLUMNS = ("--noheader", "--Node", "--exact", "--format=%N|%T|%f|%E")
"""Node, state in full, features, reason. A reason may hold anything, so it comes last."""
_SIGNS = "*~#!%$@^-+"
_NOTHING = frozenset({"none", "(null)", "n/a", ""})


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """`state` without signs (`idle`, `drained`, `draining`, `mixed`). `sign` adds to it: `*` does not answer, `~` is
    powered down, `$` is in maintenance. `reason` is empty where none is set.
    """

    state: str
    sign: str = ""
    features: tuple[str, ...] = ()
    reason: str = ""


def parse_sinfo(text: str) -> Mapping[str, SlurmNode]:
    """Return the nodes by name; a node of several partitions occurs once. Raise `ParseError` with the line."""
    nodes: dict[str, SlurmNode] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split("|", 3)
        if len(cells) != 4 or not cells[0].strip() or not cells[1].strip():
            raise ParseError(f"not a line of node, state, features and reason: {line[:100]!r}", where=f"line {number}")
        name, state, features, reason = (cell.strip() for cell in cells)
        bare = state.rstrip(_SIGNS)
        names = () if features.lower() in _NOTHING else tuple(features.split(","))
        nodes[name] = SlurmNode(bare, state[len(bare) :], names, "" if reason.lower() in _NOTHING else reason)
    return nodes


_SHOWN = re.compile(
    r"^NodeName=(?P<name>\S{1,253}) .{0,8000}?"
    r" State=(?P<state>[A-Z_*~#!%$@^+-]{1,200}) .{0,8000}?"
    r" BootTime=(?P<boot>\S{1,40}) "
    r"(?:.{0,8000}? Reason=(?P<reason>.{0,2000}?) \[[^\[\]]{1,100}\](?: |$))?"
)


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node of `scontrol show node`: state and flags in capitals, signs as their flags; the reason without author."""

    flags: frozenset[str]
    reason: str = ""
    booted: datetime | None = None


def parse_shown_nodes(text: str) -> Mapping[str, ShownNode]:
    """Return the nodes of `scontrol --oneliner show node`, printed in UTC. Raise `ParseError` with the line."""
    nodes: dict[str, ShownNode] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        found = _SHOWN.match(line)
        if found is None:
            raise ParseError(f"not a node with state and time of boot: {line[:100]!r}", where=f"line {number}")
        state = (
            found["state"]
            .replace("*", "+NOT_RESPONDING+")
            .replace("^", "+REBOOT_ISSUED+")
            .replace("@", "+REBOOT_REQUESTED+")
        )
        flags = frozenset(word for word in re.split(r"[^A-Z_]+", state) if word)
        nodes[found["name"]] = ShownNode(flags, found["reason"] or "", _boot(found["boot"]))
    return nodes


def _boot(text: str) -> datetime | None:
    """Return a time of boot, which Slurm prints without a zone; None where it has none."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
