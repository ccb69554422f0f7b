"""One entry of a BMC's log, whichever log of whichever vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.node import Serial

UNREAD = "Clusterctl.LogUnread"
"""Message id of what stands in place of a log that could not be read."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of SEL, Lifecycle log, IML, XID log ….

    at          as the BMC wrote it: its clock may be wrong, or not set
    severity    OK, Warning, Critical, or empty where the BMC gives none
    message_id  of the vendor's message registry (`IDRAC.2.7.PSU0001`); empty where it has none
    sensor      what kind of sensor wrote it, in DMTF's words (`Power Supply / Converter`)
    origin      the BMC's own id of the part that it is about
    log         the path of the log service
    cleared     it reports the end of a condition, or is marked as repaired
    """

    at: str
    severity: str
    message: str
    message_id: str = ""
    sensor: str = ""
    origin: str = ""
    log: str = ""
    cleared: bool = False


@dataclass(frozen=True, slots=True)
class LogArchive:
    """`entries`, by the log's path, are each entry's own words (id, time, message): what is in none of them is new."""

    serial: Serial
    entries: Mapping[str, frozenset[str]]

    @property
    def count(self) -> int:
        return sum(map(len, self.entries.values()))
