"""Slurm's `sinfo`, one line a node: what nodes do, and why they are out. Source: sinfo(1), https://slurm.schedmd.com/sinfo.html

The columns are asked for by name, so that they are the same from 22.05 on; `--json` changed its schema in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
