"""OpenSM's log → which routing engine made the tables that are configured now.

An engine that cannot route the fabric hands over to the next one, at last to minhop, and the log still ends with
SUBNET UP: only `… tables configured on all switches` tells who it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.forwarding import RoutingOutcome

_DONE = re.compile(r"([\w-]+) tables configured on all switches")
_COMPLAINT = re.compile(
    r"(ERR AB\w+: .*"  # of the fat-tree engine
    r"|GUID 0x[0-9a-f]+, .* port groups"  # the two switches that ERR AB09 and AB0A compare
    r"|Fabric topology is not a fat-tree.*|\w+: cannot build (?:lid matrices|fwd tables).*"
    r"|.*falling back to default routing.*)$",
    re.IGNORECASE,
)
_MAX_COMPLAINTS = 20
_REMEDY = "give the whole log of the subnet manager that is master now, from its last start on"


def parse_opensm_log(lines: Iterable[str], *, file: str = "osm.log") -> RoutingOutcome:
    """The last routing in the log. Raises ParseError where it tells of none."""
    outcome: RoutingOutcome | None = None
    complaints: list[str] = []
    for line in lines:
        if match := _DONE.search(line):
            outcome = RoutingOutcome(match[1].lower(), tuple(complaints))
            complaints = []
        elif (match := _COMPLAINT.search(line)) and len(complaints) < _MAX_COMPLAINTS:
            complaints.append(match[1].strip())
    if outcome is None:
        raise ParseError("it does not say that tables were configured", where=file, remedy=_REMEDY)
    return outcome
