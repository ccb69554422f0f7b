"""Documents in a folder of recorded logs: what the scheduler recorded, events of BMCs, counters of ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Annotated, Literal

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.documents import Within, read_document
from clusterctl.formats.times import in_utc

_Name = Annotated[str, Within(min_length=1, max_length=253)]
_OFFSET = "must be an offset such as +02:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The document's fields; all but `version` may be left out.

    nodes       the job's nodes in the order of its ranks
    silent_nodes  those whose daemon of the scheduler did not answer it, although the host answered
    ranks       host of each rank
    addresses   host of each address that NCCL prints
    utc_offset  zone of the times without one in the logs, such as `+02:00`
    user        who submitted it, by the name that the scheduler has
    started, ended  ISO 8601 with an offset, or without one in that zone
    """

    version: Literal[1]
    job: Annotated[str, Within(max_length=100)] = ""
    state: Annotated[str, Within(max_length=40)] = ""
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[_Name, ...] = ()
    failed_nodes: tuple[_Name, ...] = ()
    silent_nodes: tuple[_Name, ...] = ()
    ranks: Mapping[str, _Name] = field(default_factory=dict)
    addresses: Mapping[str, _Name] = field(default_factory=dict)
    utc_offset: Annotated[str, Within(pattern=r"^[+-]\d\d:\d\d$")] = "+00:00"
    started: str = ""
    ended: str = ""
    user: Annotated[str, Within(max_length=256)] = ""

    @property
    def zone(self) -> tzinfo:
        hours, minutes = int(self.utc_offset[1:3]), int(self.utc_offset[4:])
        sign = -1 if self.utc_offset.startswith("-") else 1
        return timezone(sign * timedelta(hours=hours, minutes=minutes))


def parse_facts(text: str, *, where: str) -> JobFacts:
    """Return the document. Raises `ParseError` naming the field."""
    facts = read_document(JobFacts, text, where)
    if int(facts.utc_offset[1:3]) > 14 or int(facts.utc_offset[4:]) > 59:
        raise ParseError(_OFFSET, where=f"{where} utc_offset")
    for name in facts.ranks:
        if not (name.isascii() and name.isdigit() and len(name) < 8):
            raise ParseError("must be numbers of ranks", where=f"{where} ranks")
    moment(facts.started, facts, where=f"{where} started")
    moment(facts.ended, facts, where=f"{where} ended")
    return facts


def moment(text: str, facts: JobFacts, *, where: str) -> datetime | None:
    """Return a time in UTC; None for an empty text. Raises `ParseError`."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return in_utc(found if found.tzinfo else found.replace(tzinfo=facts.zone))
    except ValueError:
        raise ParseError("must be a time such as 2026-11-01T12:00:00+00:00", where=where) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BmcEntry:
    at: str
    text: Annotated[str, Within(max_length=2000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BmcEvents:
    version: Literal[1]
    events: tuple[_BmcEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ports:
    version: Literal[1]
    ports: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def parse_bmc_events(text: str, *, where: str) -> tuple[tuple[datetime, str], ...]:
    """Return time (UTC) and text of each grave event of a BMC. Raises `ParseError`."""
    found = []
    for event in read_document(_BmcEvents, text, where).events:
        at = moment(event.at, JobFacts(version=1), where=where)
        if at is not None:
            found.append((at, visible_line(event.text, 500)))
    return tuple(found)


def parse_ports(text: str, *, where: str) -> Mapping[str, Mapping[str, int]]:
    """Return the error counters of each port (`mlx5_0/1`). Raises `ParseError`."""
    return read_document(_Ports, text, where).ports


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """What keeps a rank off the processor. `throttled`: the share of the periods in which its quota did."""

    stopped: bool = False
    throttled: Annotated[float, Within(ge=0.0, le=1.0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranks:
    version: Literal[1]
    ranks: Mapping[str, RankState] = field(default_factory=dict)


def parse_processes(text: str, *, where: str) -> Mapping[int, RankState]:
    """Return the state of each rank's process on one host. Raises `ParseError`."""
    ranks = read_document(_Ranks, text, where).ranks
    if not all(name.isascii() and name.isdigit() and len(name) < 8 for name in ranks):
        raise ParseError("must be numbers of ranks", where=f"{where} ranks")
    return {int(name): state for name, state in ranks.items()}


def parse_missing(text: str, *, where: str) -> tuple[str, ...]:
    """Return what a collection could not read, one text each. Raises `ParseError`."""
    return tuple(visible_line(one, 400) for one in read_document(tuple[str, ...], text, where))
