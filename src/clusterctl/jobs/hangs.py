"""Rules that find the rank that keeps the others waiting: it reports nothing, or came less far than they.

From flight-recorder dumps, in each process group of two members and more: the members whose last enqueued operation is
below the group's, or without a dump. Several groups wait for each other: the group whose operation has waited longest.
Without dumps: the ranks that report nothing among those that report a time-out, else the lowest `last enqueued work`.
Without either: the small group of stacks.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.formats.flight_recorder import GroupState
from clusterctl.jobs.attribution import Candidate, JobAction, Suspect
from clusterctl.jobs.case import Case
from clusterctl.jobs.evidence import Stack

TIMED_OUT = ("watchdog_timeout", "watchdog_status", "watchdog_stuck", "gloo_timeout")
_SMALL = 0.5
"""The late ranks are fewer than this share: else the group as a whole waits for something else."""
_REMEDY = "read the stack and the kernel log of the late rank's host; restart without it, and check it"
_WAITING: tuple[tuple[Layer, tuple[str, ...]], ...] = (
    (Layer.STORAGE, ("nfs_", "nfs4_", "rpc_wait", "ll_file", "ptlrpc", "cl_sync_io", "fuse_")),
    (Layer.SYSTEM_SOFTWARE, ("nvidia", "nv_", "uvm_", "_nv0")),
    (Layer.DATA, ("dataloader", "_next_data", "data_queue", "__getitem__", "_try_get_data")),
)
"""Words of frames, in the order of the layers that they blame: kernel stacks of storage and driver come first."""


def late_by_records(case: Case) -> Iterator[Candidate]:
    """Blame the members of a group that did not take part in its last operation, by the flight recorder."""
    stuck = [group for group in _groups(case) if group.members > 1 and group.late and _few(group.late, group.members)]
    if not stuck:
        return
    group = min(stuck, key=lambda one: one.began)
    operation = next((state.operation for state in group.states.values() if state.operation), "an operation")
    taken = f"{len(group.late)} of {group.members} ranks did not take part"
    yield _candidate(case, "late_rank", group.late, f"{operation} {group.last} of group {group.name}: {taken}")


@dataclass(frozen=True, kw_only=True)
class _Group:
    """A process group: the state of each rank that recorded one."""

    name: str
    states: Mapping[int, GroupState]

    @property
    def members(self) -> int:
        return max(len(self.states), *(state.members for state in self.states.values()))

    @property
    def last(self) -> int:
        """Return the number of the last operation that any member enqueued."""
        return max(state.sequence for state in self.states.values())

    @functools.cached_property
    def late(self) -> tuple[int, ...]:
        """Return the ranks that did not enqueue the last operation."""
        last = self.last
        return tuple(sorted(rank for rank, state in self.states.items() if state.sequence < last))

    @property
    def began(self) -> float:
        """Return when the operation that has waited longest was enqueued."""
        times = (state.created for state in self.states.values() if state.created is not None)
        return min(times, default=float("inf"))


def _groups(case: Case) -> list[_Group]:
    groups: dict[str, dict[int, GroupState]] = defaultdict(dict)
    for record in case.evidence.records:
        for state in record.groups:
            groups[state.group][record.rank] = state
    return [_Group(name=name, states=states) for name, states in groups.items()]


def _few(late: Iterable[int], members: int) -> bool:
    return len(tuple(late)) <= members * _SMALL


def late_by_reports(case: Case) -> Iterator[Candidate]:
    """Blame the rank that reports nothing while others report a time-out, else the one that came least far."""
    enqueued = _enqueued_by_rank(case)
    silent = sorted(set(case.evidence.ranks) - enqueued.keys())
    if enqueued and silent and _few(silent, len(enqueued) + len(silent)):
        yield _candidate(case, "silent_rank", silent, f"{len(enqueued)} ranks report a time-out, {len(silent)} do not")
        return
    known = {rank: work for rank, work in enqueued.items() if work >= 0}
    least, most = min(known.values(), default=0), max(known.values(), default=0)
    late = sorted(rank for rank, work in known.items() if work == least)
    if least < most and _few(late, len(known)):
        yield _candidate(case, "late_rank", late, f"last enqueued work {least}, that of others {most}")


def _enqueued_by_rank(case: Case) -> dict[int, int]:
    """Return the last enqueued work of each rank that reports a time-out; -1 where it does not report that."""
    found: dict[int, int] = {}
    for one in (one for one in case.consequences if one.rule in TIMED_OUT):
        rank, work = _rank(one.rank, one.meaning.parts), int(one.meaning.parts.get("enqueued", "-1"))
        if rank >= 0:
            found[rank] = work if work >= 0 else found.get(rank, -1)
    return found


def _rank(of_line: int | None, parts: Mapping[str, str]) -> int:
    """Return the rank that a report names. The launcher's outranks it: within a group, ranks are counted again."""
    return of_line if of_line is not None else int(parts.get("rank", "-1"))


def odd_stacks(case: Case) -> Iterator[Candidate]:
    """Blame the ranks with a stack that few others have."""
    groups = grouped_stacks(case.evidence.stacks)
    if len(groups) < 2:
        return
    small, large = groups[-1], groups[0]
    if len(small) < len(large) and _few([one.rank for one in small], len(case.evidence.stacks)):
        where = (small[0].kernel or small[0].frames or ("an unknown place",))[0]
        because = f"{len(small)} of {len(case.evidence.stacks)} ranks are in {where}, {len(large)} in another"
        yield _candidate(case, "odd_stack", sorted(one.rank for one in small), because)


def grouped_stacks(stacks: Iterable[Stack]) -> tuple[tuple[Stack, ...], ...]:
    """Return the stacks in groups of equal frames, the largest group first."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Stack]] = defaultdict(list)
    for one in stacks:
        groups[one.frames, one.kernel].append(one)
    return tuple(tuple(group) for group in sorted(groups.values(), key=len, reverse=True))


def unexplained(case: Case) -> Iterator[Candidate]:
    """Report a time-out of which no rank is known to be late."""
    timed_out = [one for one in case.consequences if one.rule in TIMED_OUT]
    if timed_out:
        yield Candidate(
            rule="unexplained_hang",
            error=timed_out[0].rule,
            failure=Failure.HANG,
            layer=Layer.UNKNOWN,
            certainty=Certainty.UNKNOWN,
            cause="a collective operation did not end, and no rank is known to be late",
            action=JobAction.INVESTIGATE,
            remedy="set TORCH_FR_BUFFER_SIZE and TORCH_FR_DUMP_TEMP_FILE for the next attempt; take stacks in a hang",
            at=timed_out[0].at,
            first=timed_out[0],
        )


def _candidate(case: Case, rule: str, late: Iterable[int], because: str) -> Candidate:
    ranks = tuple(late)
    stacks = [one for one in case.evidence.stacks if one.rank in ranks]
    hosts = {one.rank: one.host for one in stacks} | dict(case.evidence.ranks)
    first = next((one for one in case.consequences if one.rule in TIMED_OUT), None)
    layer, frame = _waits_for(stacks)
    named = _listed(ranks)
    return Candidate(
        rule=rule,
        error=first.rule if first else "",
        failure=Failure.HANG,
        layer=layer,
        certainty=Certainty.LIKELY,
        cause=f"rank {named} did not take part in a collective operation" + (f": it waits in {frame}" if frame else ""),
        action=JobAction.RESTART_WITHOUT,
        remedy=_REMEDY,
        suspects=tuple(Suspect(host=hosts.get(rank, ""), rank=rank) for rank in ranks[:64]),
        at=first.at if first else None,
        because=(because,),
        first=first,
    )


def _listed(ranks: tuple[int, ...]) -> str:
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return ", ".join(map(str, ranks[:8])) + more


def _waits_for(stacks: Iterable[Stack]) -> tuple[Layer, str]:
    """Return the layer for which the late ranks wait, by the words of their frames, and the frame."""
    frames = [frame for one in stacks for frame in (*one.kernel, *one.frames)]
    for layer, words in _WAITING:
        for frame in frames:
            if any(word in frame.lower() for word in words):
                return layer, frame
    return Layer.UNKNOWN, ""


HANGS: tuple[Callable[[Case], Iterator[Candidate]], ...] = (late_by_records, late_by_reports, odd_stacks, unexplained)
