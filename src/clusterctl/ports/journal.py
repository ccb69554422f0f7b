"""The journal, and the claims that fence its writers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.incidents.incident import IncidentState
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState, NodeSummary

LEASE_S = 120.0
"""Seconds that a claim lasts without being renewed, by default."""
WORKERS = "worker "
"""What subjects of the claims of workers on their own names begin with. One that waits for a run changes nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to act on a node until it expires: `token` fences every append and every destructive act."""

    node: NodeId
    run: str
    token: int


@dataclass(frozen=True, slots=True)
class Append:
    """Events that are written together, and the claim that they are written under."""

    events: Sequence[NewEvent]
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Claims:
    """Result of `Journal.claim`: claims by node, and the claim owners of the other nodes, as text."""

    granted: Mapping[NodeId, Claim]
    refused: Mapping[NodeId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOwner:
    """The owner of one claim. `live`: it has not expired, and its process is not certainly dead."""

    subject: str
    run: str
    host: str
    pid: int
    since: datetime
    expires: datetime
    live: bool


@dataclass(frozen=True, slots=True)
class JournalHealth:
    """Size of the database in bytes, its last event (0 and None before the first), and the nodes with a live claim."""

    bytes: int
    last_seq: int
    last_at: datetime | None
    claims: int


class Journal(Protocol):
    """The truth: append-only events, evidence by digest, and the node states that they fold to."""

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        """Write all or nothing, and the states with them; `ClaimLostError` when `claim` is no longer ours."""
        ...

    def append_each(self, appends: Sequence[Append]) -> Sequence[tuple[Event, ...] | Exception]:
        """Write each as `append` does, thousands at a tenth of its cost; return the events of each, or what `append`
        would raise. Raise `EnvironmentBrokenError` where the journal does not work.
        """
        ...

    def store(self, evidence: Iterable[Evidence]) -> None:
        """Keep evidence; storing it twice stores it once."""
        ...

    def evidence(self, digest: Digest) -> Evidence | None: ...
    def evidences(self, digests: Iterable[Digest]) -> Mapping[Digest, Evidence]:
        """Return those of them that it has, in their order: cheap for thousands."""
        ...

    def states(self, since: int = 0) -> tuple[NodeState, ...]:
        """Return the nodes with an event after the one of number `since`, by name: all nodes by default."""
        ...

    def each_state(self, without: Collection[NodeId] = ()) -> Iterator[NodeState]:
        """Yield all nodes but these, by name: whole states of thousands take gigabytes where all are kept."""
        ...

    def state_versions(self, since: int = 0) -> Mapping[NodeId, str]:
        """Return, of each node with an event after `since`, its last event's number and its summary's digest: another
        one for each state of it, and a tenth of the cost of `summaries`.
        """
        ...

    def names(self) -> Mapping[str, NodeId]:
        """Return the id of each node by its name, in the order of the names: a tenth of the cost of `summaries`."""
        ...

    def summaries(self, since: int = 0) -> tuple[NodeSummary, ...]:
        """Return a summary of each node with an event after `since`, by name: cheap for thousands."""
        ...

    def state(self, node: NodeId) -> NodeState: ...
    def states_of(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, NodeState]:
        """Return the states of these nodes, in their order; an empty one where the journal does not know the node."""
        ...

    def incidents(self, *, unfinished: bool = False) -> tuple[IncidentState, ...]:
        """Return the incidents, the one with the newest event last.

        `unfinished`: only those that are open, or with messages that are to be sent.
        """
        ...

    def history(self, stream: Stream, subject: str) -> Iterator[Event]: ...
    def histories(self, nodes: Collection[NodeId], kinds: Collection[Kind]) -> Iterator[Event]:
        """Yield the events of these nodes that are of these kinds, oldest first of each node: cheap for hundreds."""
        ...

    def latest(self, stream: Stream, kind: Kind | None = None) -> Iterator[Event]:
        """Return the last event of each kind of each subject, oldest first; `kind`: only of that one."""
        ...

    def recent(
        self, kinds: Collection[Kind], since: datetime, subjects: Collection[str] | None = None
    ) -> Iterator[Event]:
        """Yield all events of these kinds, of whatever stream, that are not older than `since`, oldest first.

        subjects  only theirs: the other events are not decoded
        """
        ...

    def later(self, kinds: Collection[Kind], seq: int) -> Iterator[Event]:
        """Yield all events of these kinds, of whatever stream, after the one of number `seq`, oldest first."""
        ...

    def changed(self, kinds: Collection[Kind], seq: int) -> Collection[NodeId]:
        """Return the nodes with an event of these kinds after the one of number `seq`: decodes none of the events."""
        ...

    def last_seq(self) -> int:
        """Return the number of the last event; 0 before the first."""
        ...

    def owners(self, prefix: str) -> tuple[ClaimOwner, ...]:
        """Return the owners of claims on subjects that begin with `prefix`, by subject; reads only."""
        ...

    def health(self) -> JournalHealth:
        """Return size, last event and live claims: cheap for millions of events."""
        ...

    @property
    def lease_s(self) -> float:
        """Seconds that a claim lasts without being renewed."""
        ...

    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims: ...
    def renew(self, claims: Iterable[Claim]) -> Mapping[NodeId, str]:
        """Push the expiry of the claims that are still ours; of the others: the reason, as text."""
        ...

    def release(self, claims: Iterable[Claim], rest_s: float = 0.0) -> None:
        """Give claims back; those that are no longer ours stay as they are. No run gets them for `rest_s` seconds."""
        ...

    def close(self) -> None:
        """Close the connections to the database; the journal is not used afterwards."""
        ...
