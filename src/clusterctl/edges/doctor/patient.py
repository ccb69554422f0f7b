"""What the checks look at: the site where there is one, and the network's answers, each asked for once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from clusterctl.edges.site import Site
from clusterctl.fleet.errors import ClusterctlError


@dataclass(frozen=True, slots=True)
class Answer:
    """How one service answered: why not, or its clock's distance to ours in seconds (None where it told no time)."""

    error: ClusterctlError | None = None
    offset_s: float | None = None
    note: str = ""


def offset(date: str | None, now: datetime) -> float | None:
    """How far a service's clock is before ours, in seconds; None where it told no time that can be read.

    `date` is the header of RFC 9110, 6.6.1, to the second.
    """
    try:
        told = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    if told.tzinfo is None:
        told = told.replace(tzinfo=UTC)
    return (told - now).total_seconds()


@dataclass(frozen=True, slots=True)
class Patient:
    """A controller with its site. `bmcs` answers by the BMC's address; those that were not asked in time are absent."""

    site: Site
    bmcs: Future[Mapping[str, Answer]]
    maas: Future[Answer]
