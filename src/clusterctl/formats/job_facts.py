"""`job.json`: what the scheduler recorded of a job, in a folder of recorded logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated, Literal

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Within, read_document

_Name = Annotated[str, Within(min_length=1, max_length=253)]
_OFFSET = "must be an offset such as +02:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The document's fields; all but `version` may be left out.

    nodes       the job's nodes in the order of its ranks
    ranks       host of each rank
    addresses   host of each address that NCCL prints
    utc_offset  zone of the times without one in the logs, such as `+02:00`
    started, ended  ISO 8601 with an offset, or without one in that zone
    """

    version: Literal[1]
    job: Annotated[str, Within(max_length=100)] = ""
    state: Annotated[str, Within(max_length=40)] = ""
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[_Name, ...] = ()
    failed_nodes: tuple[_Name, ...] = ()
    ranks: Mapping[str, _Name] = field(default_factory=dict)
    addresses: Mapping[str, _Name] = field(default_factory=dict)
    utc_offset: Annotated[str, Within(pattern=r"^[+-]\d\d:\d\d$")] = "+00:00"
    started: str = ""
    ended: str = ""

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
    except ValueError:
        raise ParseError("must be a time such as 2026-11-01T12:00:00+00:00", where=where) from None
    return (found if found.tzinfo else found.replace(tzinfo=facts.zone)).astimezone(UTC)
