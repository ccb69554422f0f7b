"""Reads from a standby of the journal's database, and from the database itself where the standby does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from clusterctl.edges.journal.database import Database
from clusterctl.fleet.errors import EnvironmentBrokenError

log = logging.getLogger(__name__)
T = TypeVar("T")


class Reads(Protocol):
    """What answers reads."""

    def read(self, work: Callable[[Connection], T]) -> T: ...
    def snapshot(self, work: Callable[[Connection], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class ReplicaReads:
    """Reads from `replica` while it answers, else from `primary`."""

    replica: Database
    primary: Database

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._asked(lambda database: database.read(work))

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        return self._asked(lambda database: database.snapshot(work))

    def _asked(self, ask: Callable[[Database], T]) -> T:
        try:
            return ask(self.replica)
        except EnvironmentBrokenError as error:
            log.warning("the replica of the journal gives no answer, its database is read instead: %s", error.message)
            return ask(self.primary)
