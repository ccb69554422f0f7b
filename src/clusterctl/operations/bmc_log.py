"""The hardware log of a machine as its BMC has it now. Nothing is recorded."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.ports.deadline import Deadline

SECONDS = 120.0
MOST_ENTRIES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcLog:
    """`entries`: the newest first; `older`: how many more the BMC gave."""

    entries: tuple[LogEntry, ...]
    older: int = 0


def read(context: SiteContext, node: str, control: Control) -> BmcLog:
    """Return the newest entries of all logs of a node's BMC.

    Raises `UsageError` where the site names no BMC of the node, and `EdgeError` where it cannot be read.
    """
    deadline = Deadline.after(SECONDS, control.cancelled)
    address = context.site.bmc_address(node)
    with closing(context.adapters(Access.READ)) as adapters, adapters.bmcs.open(address, deadline) as bmc:
        found = bmc.event_log(deadline).value
    return BmcLog(entries=found[:MOST_ENTRIES], older=max(0, len(found) - MOST_ENTRIES))
