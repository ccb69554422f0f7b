"""The intent log of one run: side effects are intended in the journal before they happen, and fenced by claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from clusterctl.fleet.acts import Act, ActResult, AnyDetails
from clusterctl.fleet.errors import ClaimLostError, ClusterctlError, OutcomeUnknownError
from clusterctl.fleet.event import Payload, node_event
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import ActIntended, ActObserved, InstallProgress
from clusterctl.ports import Append, Claim, Deadline, Journal
from clusterctl.steps.executor.lease import Lease


def _ignore(_node: NodeId, _message: str) -> None:
    """Drop the message."""


def failure(error: ClusterctlError) -> ActResult:
    """Return the result of an act that raised `error`."""
    return ActResult.UNKNOWN if isinstance(error, OutcomeUnknownError) else ActResult.FAILED


class IntentLog:
    """Writes what is about to happen to nodes, and what then was seen, under the claims of one run."""

    def __init__(
        self, journal: Journal, claims: Mapping[NodeId, Claim], on_message: Callable[[NodeId, str], None] = _ignore
    ) -> None:
        """Open the log. `on_message` receives what a machine reports about itself during a step."""
        self._journal = journal
        self._on_message = on_message
        self.lease = Lease(journal, claims)

    def intend(self, node: NodeId, act: Act, target: str, details: AnyDetails | None = None) -> None:
        """Write that `act` is about to be done to `target`. Raise `ClaimLostError` when another run has the node."""
        self.note(node, ActIntended(act=act, target=target, details=details))

    def fenced(self, nodes: Iterable[NodeId], deadline: Deadline) -> Deadline:
        """Return the deadline to act on `nodes` with: an edge checks it before each request, and stops if one is lost.

        Between intent and effect the controller may have slept for hours, and the nodes be another run's.
        """
        return deadline.fenced(self.lease.fence(nodes))

    def observed(self, node: NodeId, act: Act, message: str, result: ActResult = ActResult.DONE) -> None:
        """Write what came of it."""
        self.note(node, ActObserved(act=act, result=result, message=message))

    def progress(self, node: NodeId, at: datetime, message: str) -> None:
        """Write what a machine reported about its install, and when."""
        self.note(node, InstallProgress(at=at, message=message))
        self._on_message(node, message)

    def announce(self, node: NodeId, message: str) -> None:
        """Report what holds up a node; it is no event of the node, and nothing is written."""
        self._on_message(node, message)

    def intend_each(self, act: Act, targets: Mapping[NodeId, tuple[str, AnyDetails | None]]) -> None:
        """Write for each node what `intend` does, in few transactions: thousands wait for this before a play begins.

        Raise `ClaimLostError` when another run has one of them.
        """
        payloads = {
            node: ActIntended(act=act, target=target, details=details) for node, (target, details) in targets.items()
        }
        self._note_all(payloads)

    def observed_each(self, act: Act, results: Mapping[NodeId, tuple[str, ActResult]]) -> None:
        """Write for each node what `observed` does. Raise `ClaimLostError` when another run has one of them."""
        self._note_all(
            {node: ActObserved(act=act, result=result, message=text) for node, (text, result) in results.items()}
        )

    def _note_all(self, payloads: Mapping[NodeId, Payload]) -> None:
        for error in self.note_each(payloads).values():
            raise error

    def note_each(self, payloads: Mapping[NodeId, Payload]) -> Mapping[NodeId, ClaimLostError]:
        """Write one fact about each node; return the nodes that another run has, and of which nothing was written."""
        lost: dict[NodeId, ClaimLostError] = {}
        appends: dict[NodeId, Append] = {}
        for node, payload in payloads.items():
            try:
                appends[node] = Append([node_event(node, payload)], self.lease.claim(node))
            except ClaimLostError as error:
                lost[node] = error
        for node, written in zip(appends, self._journal.append_each(list(appends.values())), strict=True):
            if isinstance(written, ClaimLostError):
                self.lease.lose(node, written.message)
                lost[node] = written
            elif isinstance(written, Exception):
                raise written
        return lost

    def note(self, node: NodeId, payload: Payload) -> None:
        """Write a fact that must be durable before the next side effect."""
        try:
            self._journal.append([node_event(node, payload)], claim=self.lease.claim(node))
        except ClaimLostError as error:
            self.lease.lose(node, error.message)
            raise
