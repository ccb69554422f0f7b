"""What `sminfo` (infiniband-diags) prints of the subnet manager that answers.

sminfo: sm lid 1 sm guid 0x2c5eab0300a1b2c3, activity count 4711 priority 14 state 3 SMINFO_MASTER
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of

MASTER = 3
"""`state` of the master (InfiniBand Architecture Specification, SMInfo.SMState)."""
_LINE = re.compile(
    r"sm lid (\d{1,5}) sm guid 0x([0-9a-fA-F]{1,16}), activity count (\d{1,12}) priority (\d{1,2}) state (\d{1,2})\b"
)


@dataclass(frozen=True, slots=True)
class SubnetManager:
    """`guid`: of the port that it runs at. `activity`: how many packets it has sent (OpenSM: qp0_mads_sent)."""

    guid: Guid
    lid: int
    activity: int
    priority: int
    master: bool


def parse_sminfo(text: str) -> SubnetManager:
    """Return the subnet manager. Raise `ParseError` for another text."""
    found = _LINE.search(text)
    if found is None:
        raise ParseError("there is no subnet manager in it", where="sminfo")
    lid, guid, activity, priority, state = found.groups()
    return SubnetManager(guid_of(guid), int(lid), int(activity), int(priority), int(state) == MASTER)
