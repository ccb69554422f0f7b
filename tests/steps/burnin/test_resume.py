"""A burn-in whose process dies at any write: the next one measures what is left, and comes to the same end."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.event import Event, Kind, NewEvent
from clusterctl.fleet.finding import Digest, Evidence, Verdict
from clusterctl.ports import Deadline
from clusterctl.steps.burnin.campaigns import CampaignJournal
from clusterctl.steps.executor.intent_log import IntentLog
from tests.steps.burnin.test_burnin import Hosts, burnin_step, nodes, worst

COUNT = 6
SLOW = frozenset({"n1"})


class DiedError(BaseException):
    """The process is gone: nothing catches it, and nothing is written after it."""


@dataclass
class Dying:
    """A journal whose process dies right after its `last`-th write, or right before the one after that."""

    inner: SqlJournal
    last: int
    writes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def _write(self) -> None:
        self.writes += 1
        if self.writes > self.last:
            raise DiedError

    def append(self, events: Sequence[NewEvent]) -> Sequence[Event]:
        with self.lock:
            self._write()
            return self.inner.append(events)

    def store(self, evidence: Iterable[Evidence]) -> None:
        with self.lock:
            self._write()
            self.inner.store(evidence)

    def evidence(self, digest: Digest) -> Evidence | None:
        return self.inner.evidence(digest)

    def recent(self, kinds: Collection[Kind], since: datetime) -> Iterator[Event]:
        return self.inner.recent(kinds, since)


def burned_in(hosts: Hosts, journal: CampaignJournal) -> dict[str, Verdict]:
    step = burnin_step(hosts, journal=journal)
    outcomes = step.run(nodes(COUNT), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    return {outcome.node: worst(outcome) for outcome in outcomes}


def test_whatever_was_written_last_the_next_run_goes_on_from_there(book: SqlJournal) -> None:
    """Killed at every single write of a run with a slow node: the slow one is found, all others pass, what was reported is
    not asked again, and at most what was in flight is.
    """
    straight = Hosts(slow=SLOW)
    expected = burned_in(straight, book)
    assert {node for node, verdict in expected.items() if verdict is Verdict.FAIL} == {"id1"}
    for last in itertools.count():
        hosts = Hosts(slow=SLOW)
        dying = Dying(book, last)
        try:
            burned_in(hosts, dying)
        except DiedError:
            pass
        else:
            break
        assert burned_in(hosts, book) == expected, last
        assert len(hosts.pairs) <= len(straight.pairs) + COUNT // 2, last
    assert last > 2 * len(straight.pairs)
