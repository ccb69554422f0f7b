"""Routing of a subnet: forwarding tables of `dump_fts` or `opensm-lfts.dump`, and the routing engine from OpenSM's log.

Tables that are empty, cut off, printed without destinations (`-n`), or in which two switches name different owners of
one LID are an error with the line. They are read line by line: the tables of 512 hosts are 100 MB of text.
`dump_fts` (44.0, measured) omits a top LID that is a multiple of 64; that LID then has no route in any table.

A routing engine that cannot route the fabric is followed by the next one, at last by minhop. The log still ends with
SUBNET UP: only `… tables configured on all switches` names the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import NO_ROUTE, ForwardingTables, RoutingOutcome
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of

MAX_UNICAST_LID = 0xBFFF
_REMEDY = "read the tables again with `dump_fts`, without options, and keep its whole output"
_ENTRY = re.compile(r"0x([0-9a-fA-F]{4,8}) +([0-9]{1,3}|\?\?\?) *[:#] *\(?([^:']*)(: *'.*'\)?)?$")
_OWNER = re.compile(r"(?:Channel Adapter|Switch|Router) portguid 0x([0-9a-fA-F]{1,16})$")
_SWITCH = re.compile(r"Unicast lids \[[^]]*\] of switch .*?guid 0x([0-9a-fA-F]{1,16}) \(.*\):$")
_END = re.compile(r"([0-9]{1,9}) (valid )?lids dumped$")
_HEADINGS = ("Lid  Out   Destination", "Port     Info")
_NO_OWNER = ("illegal port", "path #", "node info not available", "unknown node and type")


@dataclass(slots=True)
class _Reader:
    """State while the tables are read; `current` is the switch of the open table."""

    file: str
    tables: dict[Guid, bytearray] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)
    current: Guid | None = None
    entries: int = 0

    def error(self, line: int, message: str) -> ParseError:
        return ParseError(message, where=f"{self.file}:{line}" if line else self.file, remedy=_REMEDY)

    def read(self, number: int, text: str) -> None:
        """Read one line that is not blank."""
        if text.startswith("0x"):
            self._entry(number, text)
        elif match := _SWITCH.match(text):
            self._begin(number, guid_of(match[1]))
        elif match := _END.match(text):
            self._end(number, match)
        elif text.startswith("Multicast"):
            raise self.error(number, "multicast tables: the routes between hosts are in the unicast ones")
        elif text not in _HEADINGS:
            raise self.error(number, f"line not understood: {text[:80]!r}")

    def _begin(self, number: int, guid: Guid) -> None:
        if self.current is not None:
            raise self.error(number, f"the table of switch {self.current} does not end: output cut off or mixed up")
        if guid in self.tables:
            raise self.error(number, f"a second table of switch {guid}")
        self.tables[guid] = bytearray()
        self.current, self.entries = guid, 0

    def _end(self, number: int, match: re.Match[str]) -> None:
        if self.current is None:
            raise self.error(number, "the end of a table without a start")
        if match[2] and int(match[1]) != self.entries:
            raise self.error(number, f"{self.entries} entries instead of {match[1]}: lines are missing")
        self.current = None

    def _entry(self, number: int, text: str) -> None:
        match = _ENTRY.match(text)
        if match is None:
            raise self.error(number, f"entry cut off or not understood: {text[:80]!r}")
        if self.current is None:
            raise self.error(number, "an entry before any switch")
        lid = int(match[1], 16)
        if lid > MAX_UNICAST_LID:
            raise self.error(number, f"LID {lid:#x} is not a unicast LID")
        self._set(number, lid, NO_ROUTE if match[2] == "???" else int(match[2]))
        self.entries += 1
        if match[3] != self.owners.get(lid):
            self._owner(number, lid, match[3])

    def _set(self, number: int, lid: int, port: int) -> None:
        if port > NO_ROUTE:
            raise self.error(number, f"there is no port {port}")
        table = self.tables[self.current] if self.current is not None else bytearray()
        if lid < len(table):
            raise self.error(number, f"LID {lid:#x} out of order: the same or a higher LID came before")
        table.extend(bytes([NO_ROUTE]) * (lid - len(table)))
        table.append(port)

    def _owner(self, number: int, lid: int, owner: str) -> None:
        """Store the LID's owner as text: comparing texts keeps a million lines fast."""
        if owner.startswith(_NO_OWNER):
            return
        if not _OWNER.match(owner):
            message = "no destination after the port: made with -n?" if not owner else f"unknown owner {owner[:60]!r}"
            raise self.error(number, message)
        if lid in self.owners:
            message = f"LID {lid:#x} is {owner} here and was {self.owners[lid]} before: LIDs changed during the dump"
            raise self.error(number, message)
        self.owners[lid] = owner


def parse_dump_fts(lines: Iterable[str], *, file: str = "dump_fts") -> ForwardingTables:
    """Return the tables of all switches; `file` is only for messages. Raises ParseError."""
    reader = _Reader(file)
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped:
            reader.read(number, stripped)
    if not reader.tables:
        raise reader.error(0, "no forwarding table in it: empty output is not an empty fabric")
    if reader.current is not None:
        raise reader.error(0, f"it ends in the middle of the table of switch {reader.current}: output cut off")
    longest = max(len(table) for table in reader.tables.values())
    return ForwardingTables(
        tables={guid: bytes(table.ljust(longest, bytes([NO_ROUTE]))) for guid, table in reader.tables.items()},
        lids={lid: guid_of(owner.rsplit("0x", 1)[1]) for lid, owner in reader.owners.items()},
    )


_DONE = re.compile(r"(?<![\w-])([\w-]+) tables configured on all switches")
_FAILURE = re.compile(
    r"(ERR AB\w+: .*"  # of the fat-tree engine
    r"|GUID 0x[0-9a-f]{1,16}, .{0,200}? port groups"  # the two switches that ERR AB09 and AB0A compare
    r"|Fabric topology is not a fat-tree.*|\b\w+: cannot build (?:lid matrices|fwd tables).*"
    r"|^.*falling back to default routing.*)$",
    re.IGNORECASE,
)
_MAX_FAILURES = 20
_LOG_REMEDY = "give the whole log of the master subnet manager since its last start"


def parse_opensm_log(lines: Iterable[str], *, file: str = "osm.log") -> RoutingOutcome:
    """Return the last routing in the log. Raises ParseError where there is none."""
    outcome: RoutingOutcome | None = None
    failures: list[str] = []
    for line in lines:
        if match := _DONE.search(line):
            outcome = RoutingOutcome(match[1].lower(), tuple(failures))
            failures = []
        elif (match := _FAILURE.search(line)) and len(failures) < _MAX_FAILURES:
            failures.append(match[1].strip())
    if outcome is None:
        raise ParseError("no line reports configured tables", where=file, remedy=_LOG_REMEDY)
    return outcome
