"""Event logs cleared by an operator's order: read in full, kept in the journal, cleared, read back as empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.acts import Act
from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EdgeError
from clusterctl.fleet.event import Payload, node_event
from clusterctl.fleet.finding import Digest, Evidence, Observed
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, Journal
from clusterctl.ports.isolation import as_error
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each


@dataclass(frozen=True, slots=True)
class ClearResult:
    """The result of one node: how many entries were kept and cleared, and where they are kept; or why not."""

    name: str
    entries: int = 0
    kept: tuple[Digest, ...] = ()
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class EventLogClearer:
    """Clears the logs of `workers` nodes at a time."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    workers: int

    def clear(
        self, nodes: Sequence[tuple[NodeState, Serial]], reason: str, intents: IntentLog, deadline: Deadline
    ) -> Iterator[ClearResult]:
        """Yield each node's result as soon as it is known. Repeated, it keeps what is there then."""
        calls = [partial(self._ordered, node, serial, reason, intents, deadline) for node, serial in nodes]
        return each(calls, self.workers, intents.lease)

    def _ordered(
        self, node: NodeState, serial: Serial, reason: str, intents: IntentLog, deadline: Deadline
    ) -> ClearResult:
        fenced = intents.fenced([node.id], deadline)
        try:
            with self.bmcs.open(self.address_of(node.name), fenced) as bmc:
                seen = bmc.archive_log(fenced)
                _prove(seen.value, serial)
                kept = self._keep(seen.evidence)
                if not seen.value.count:
                    return ClearResult(node.name, 0, kept)
                intent = ActIntended(act=Act.LOG_CLEAR, target=seen.value.serial, reason=reason)
                self._note(node, intent, kept, intents)
                return self._clear(bmc, node, seen, intents, fenced)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return ClearResult(node.name, error=as_error(error, node.name))

    def _clear(
        self, bmc: BmcClient, node: NodeState, log: Observed[LogArchive], intents: IntentLog, deadline: Deadline
    ) -> ClearResult:
        """Clear the log; the result has what is kept of it as its evidence."""
        archive, kept = log.value, tuple(item.digest for item in log.evidence)
        try:
            done = bmc.clear_log(archive, deadline)
        except (CancelledError, ClaimLostError):
            raise
        except ClusterctlError as error:
            self._note(node, ActObserved(act=Act.LOG_CLEAR, result=failure(error), message=error.message), (), intents)
            return ClearResult(node.name, 0, kept, error)
        observed = ActObserved(act=Act.LOG_CLEAR, message=f"{archive.count} entries, kept")
        self._note(node, observed, (*kept, *self._keep(done.evidence)), intents)
        return ClearResult(node.name, archive.count, kept)

    def _note(self, node: NodeState, payload: Payload, digests: tuple[Digest, ...], intents: IntentLog) -> None:
        self.journal.append([node_event(node.id, payload, digests)], claim=intents.lease.claim(node.id))

    def _keep(self, evidence: Sequence[Evidence]) -> tuple[Digest, ...]:
        self.journal.store(evidence)
        return tuple(item.digest for item in evidence)


def _prove(archive: LogArchive, serial: Serial) -> None:
    """Raise `EdgeError` where the log is another machine's: nothing of it is kept as this node's."""
    if archive.serial != serial:
        remedy = "find out which address the machine's BMC has now, and correct the site file"
        raise EdgeError(
            f"this BMC belongs to machine {archive.serial}, not to {serial}: it was not touched", remedy=remedy
        )
