"""The evidence of one job in the order and the groups that the rules ask for."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.blame import Layer, Role
from clusterctl.formats.host.kernel_log import Message, Xid, xids
from clusterctl.jobs.evidence import EarlierFailure, JobEvidence, Observation, Source
from clusterctl.jobs.kernel_lines import XID, message_of, xid_meanings

AROUND = timedelta(minutes=5)
"""Clocks of hosts differ, and logs are written late: within this time the order of two errors means nothing."""
TOGETHER = timedelta(seconds=60)
"""Hosts that report the same within this time have one cause in common."""
LONGEST = timedelta(hours=1)
"""Without the job's start: so long before the first consequence an error of the kernel may have been its cause."""
_MOST_TASKS = 1024
"""Of one host: more are no tasks of a training."""
_LAST = datetime.max.replace(tzinfo=UTC)


class Case:
    """The evidence, and questions about it."""

    def __init__(self, evidence: JobEvidence) -> None:
        self.evidence = evidence
        begins = _begins(evidence)
        of_the_job = (one for one in evidence.observations if not _before(one, begins))
        self.observations = tuple(sorted(_with_hosts(_with_xids(of_the_job)), key=when))

    @functools.cached_property
    def causes(self) -> tuple[Observation, ...]:
        """Return what may be the first error, in order of time."""
        return tuple(one for one in self.observations if one.meaning.blame.role is Role.CAUSE)

    @functools.cached_property
    def consequences(self) -> tuple[Observation, ...]:
        return tuple(one for one in self.observations if one.meaning.blame.role is Role.CONSEQUENCE)

    def of_rules(self, *names: str) -> tuple[Observation, ...]:
        return tuple(one for one in self.causes if one.rule in names)

    def of_layers(self, *layers: Layer) -> tuple[Observation, ...]:
        return tuple(one for one in self.causes if one.meaning.blame.layer in layers)

    def earlier(self, rule: str) -> tuple[EarlierFailure, ...]:
        """Return the earlier failures that this rule of lines had the blame for."""
        return tuple(one for one in self.evidence.earlier if one.rule == rule)

    def host_of(self, peer: str) -> str:
        """Return the host with an address that NCCL prints; the address itself where it is no known host."""
        bare = peer.strip("[]")
        return self.evidence.addresses.get(bare, bare if bare in self.evidence.hosts else "")

    @functools.cached_property
    def own_errors(self) -> frozenset[str]:
        """Return the hosts with an error of their own in the kernel's log, or that the scheduler lost."""
        kernel = {one.host for one in self.causes if one.source is Source.KERNEL}
        return frozenset((kernel | set(self.evidence.scheduler.failed_nodes)) - {""})


def _begins(evidence: JobEvidence) -> datetime | None:
    """Return from when on the kernel's messages are the job's: its start, else `LONGEST` before it began to fail.

    A kernel log goes back to the boot, so it has the errors of other jobs, too.
    """
    if evidence.scheduler.started is not None:
        return evidence.scheduler.started - AROUND
    failing = [one.at for one in evidence.observations if one.at and one.meaning.blame.role is Role.CONSEQUENCE]
    ends = [*failing, *([evidence.scheduler.ended] if evidence.scheduler.ended else [])]
    return min(ends) - LONGEST if ends else None


def _with_hosts(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Yield the observations; lines that srun has labelled get the host that srun names for their task.

    A task may start several ranks: the number of a rank alone names no host.
    """
    found = list(observations)
    hosts = {task: node for one in found for task, node in _tasks(one)}
    for one in found:
        known = hosts.get(one.task, "") if one.task is not None and not one.host else ""
        yield replace(one, host=known) if known else one


def _tasks(one: Observation) -> Iterator[tuple[int, str]]:
    """Yield the tasks of a line like `srun: error: n1: tasks 0-3,7: Exited with exit code 1`, each with its host."""
    for part in one.meaning.parts.get("tasks", "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            for task in range(int(first), min(int(last or first), int(first) + _MOST_TASKS) + 1):
                yield task, one.meaning.parts.get("node", "")


def _before(one: Observation, begins: datetime | None) -> bool:
    return one.source is Source.KERNEL and one.at is not None and begins is not None and one.at < begins


def when(observation: Observation) -> datetime:
    """Return the time of an observation; those without a time come last."""
    return observation.at or _LAST


def shared(found: Iterable[Observation], key: Callable[[Observation], object]) -> Iterator[tuple[Observation, ...]]:
    """Yield the observations of each key that several hosts report within `TOGETHER` of the first."""
    groups: dict[object, list[Observation]] = defaultdict(list)
    for one in found:
        groups[key(one)].append(one)
    for group in groups.values():
        near = tuple(one for one in group if when(one) - when(group[0]) <= TOGETHER)
        if len({one.host for one in near} - {""}) > 1:
            yield near


def _with_xids(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Yield the observations; the Xids of a host are judged together: one for each GPU and code.

    Raw lines are joined where Xid 154, or the same error of several processes, changes what one line means.
    """
    hosts: dict[str, list[tuple[Observation, Xid]]] = defaultdict(list)
    for one in observations:
        found = xids((Message("", message_of(one.text)),)) if one.rule.startswith(XID) else ()
        if found:
            hosts[one.host].append((one, found[0]))
        else:
            yield one
    for pairs in hosts.values():
        yield from _judged_together(pairs)


def _judged_together(pairs: list[tuple[Observation, Xid]]) -> Iterator[Observation]:
    first: dict[tuple[str, str], Observation] = {}
    for one, xid in pairs:
        first.setdefault((f"{XID}{xid.code}", xid.pci), one)
    for meaning in xid_meanings(xid for _, xid in pairs):
        one = first[meaning.rule, _gpu(meaning.parts)]
        yield replace(one, meaning=meaning, rank=one.rank)


def _gpu(parts: Mapping[str, str]) -> str:
    return parts.get("gpu", "")
