"""Event logs by a person's order: read to their end, kept in the journal, cleared on the proven machine, seen empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EdgeError, OutcomeUnknownError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, Journal
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.power import FAILED, UNSURE

ACT = "log.clear"


@dataclass(frozen=True, slots=True)
class ClearResult:
    """What became of one node: how many entries were kept and cleared, where they are kept; or why not."""

    name: str
    entries: int = 0
    kept: tuple[Digest, ...] = ()
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class EventLogClearer:
    """Carries it out on many nodes at once, as many as `workers`."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    workers: int

    def clear(
        self, nodes: Sequence[tuple[NodeState, Serial]], reason: str, acts: IntentLog, deadline: Deadline
    ) -> Iterator[ClearResult]:
        """Each node's outcome as soon as it is known. One that was interrupted is done by the same order again, which
        keeps what stands there then.
        """
        calls = [partial(self._ordered, node, serial, reason, acts, deadline) for node, serial in nodes]
        return each(calls, self.workers, acts.lease.keep)

    def _ordered(
        self, node: NodeState, serial: Serial, reason: str, acts: IntentLog, deadline: Deadline
    ) -> ClearResult:
        fenced = acts.fenced([node.id], deadline)
        try:
            with self.bmcs.open(self.address_of(node.name), fenced) as bmc:
                seen = bmc.archive_log(fenced)
                _prove(seen.value, serial)
                kept = self._keep(seen.evidence)
                if not seen.value.count:
                    return ClearResult(node.name, 0, kept)
                return self._clear(bmc, node, seen.value, reason, kept, acts, fenced)
        except ClusterctlError as error:
            return ClearResult(node.name, error=error)

    def _clear(  # noqa: PLR0917 — one order, its means and its limits
        self,
        bmc: BmcClient,
        node: NodeState,
        archive: LogArchive,
        reason: str,
        kept: tuple[Digest, ...],
        acts: IntentLog,
        deadline: Deadline,
    ) -> ClearResult:
        """Intent and outcome stand in the journal, with what is kept as their evidence."""
        intent = {"act": ACT, "target": archive.serial, "reason": reason}
        self._note(node, Kind.ACT_INTENDED, intent, kept, acts)
        try:
            done = bmc.clear_log(archive, deadline)
        except (CancelledError, ClaimLostError):
            raise
        except ClusterctlError as error:
            word = UNSURE if isinstance(error, OutcomeUnknownError) else FAILED
            self._note(node, Kind.ACT_OBSERVED, {"act": ACT, "result": f"{word}: {error.message}"}, (), acts)
            return ClearResult(node.name, 0, kept, error)
        result = f"{archive.count} entries, kept"
        self._note(node, Kind.ACT_OBSERVED, {"act": ACT, "result": result}, (*kept, *self._keep(done.evidence)), acts)
        return ClearResult(node.name, archive.count, kept)

    def _note(
        self, node: NodeState, kind: Kind, data: dict[str, str], digests: tuple[Digest, ...], acts: IntentLog
    ) -> None:
        self.journal.append([NewEvent("node", node.id, kind, data, digests)], claim=acts.lease.claim(node.id))

    def _keep(self, evidence: Sequence[Evidence]) -> tuple[Digest, ...]:
        self.journal.store(evidence)
        return tuple(item.digest for item in evidence)


def _prove(archive: LogArchive, serial: Serial) -> None:
    """Before anything is kept as this node's."""
    if archive.serial != serial:
        remedy = "find out which address the machine's BMC has now, and correct the site file"
        raise EdgeError(
            f"this BMC belongs to machine {archive.serial}, not to {serial}: it was not touched", remedy=remedy
        )
