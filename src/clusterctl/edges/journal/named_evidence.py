"""Which evidence an event names: as passing, whose raw output may be removed one day, or otherwise, which is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clusterctl.edges.journal.integrity import Row, event_of
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.payloads.node import ReportRecorded

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PASSING = (Verdict.PASS, Verdict.NOT_APPLICABLE)
_MAY_PASS = (Kind.REPORT_RECORDED.value, Kind.FABRIC_COUNTERS_READ.value)


def digests_in(*texts: str) -> list[str]:
    """Return all that looks like a digest in these texts."""
    return _DIGEST.findall(" ".join(texts))


def names(row: Row) -> tuple[frozenset[str], frozenset[str]]:
    """Return the evidence that an event names as passing, and what it names otherwise.

    A report names as passing what none of its bad findings names; a reading of counters is judged by other events.
    """
    if row["kind"] not in _MAY_PASS:
        return frozenset(), frozenset(digests_in(row["evidence"], row["data"]))
    read = event_of(row)
    bad = frozenset(digest for one in _findings(read) if one.verdict not in _PASSING for digest in one.evidence)
    return frozenset(digests_in(row["evidence"], row["data"])) - bad, bad


def is_reading(row: Row) -> bool:
    """Return whether the event is a reading of the fabric's counters."""
    return bool(row["kind"] == Kind.FABRIC_COUNTERS_READ.value)


def _findings(read: Event) -> Sequence[Finding]:
    return read.payload.report.findings if isinstance(read.payload, ReportRecorded) else ()
