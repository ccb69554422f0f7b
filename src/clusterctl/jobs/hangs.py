"""Rules that find the rank that keeps the others waiting: it reports nothing, or came less far than they.

From flight-recorder dumps, in each process group of two members and more: the members whose last enqueued operation is
below the group's; where none is, the members without a dump. Several groups wait for each other: the group whose
operation has waited longest. Without dumps: the ranks that report nothing among those that report a time-out, else the
lowest `last enqueued work` of a process group: each group counts its own.
Without either: the small group of stacks.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.formats.flight_recorder import GroupState
from clusterctl.jobs.attribution import Candidate, JobAction, Suspect
from clusterctl.jobs.case import Case
from clusterctl.jobs.evidence import Observation, Stack

TIMED_OUT = ("watchdog_timeout", "watchdog_status", "watchdog_stuck", "gloo_timeout", "rendezvous_timeout")
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
    groups = [group for group in _groups(case) if group.members > 1]
    stuck = [group for group in groups if group.late and _few(group.late, group.members)]
    if not stuck:
        yield from _without_records(case, groups)
        return
    group = min(stuck, key=lambda one: one.began)
    taken = f"{len(group.late)} of {group.members} ranks did not take part"
    yield _candidate(case, "late_rank", group.late, f"{group.waits_for}: {taken}")


def _without_records(case: Case, groups: Iterable[_Group]) -> Iterator[Candidate]:
    """Blame the members of a waiting group that left no record: a rank that hangs, or is dead, writes none.

    Likely only where another rank of each of their hosts has one: else the hosts' files may not have been read.
    """
    waiting = [group for group in groups if group.absent and _few(group.absent, group.members) and group.is_waiting]
    if not waiting:
        return
    group = min(waiting, key=lambda one: one.began)
    because = f"{group.waits_for}: {len(group.absent)} of {group.members} ranks left no record"
    found = _candidate(case, "unrecorded_rank", group.absent, because)
    read = {case.evidence.ranks.get(record.rank, "") for record in case.evidence.records} - {""}
    sure = all(suspect.host in read for suspect in found.suspects)
    yield found if sure else replace(found, certainty=Certainty.UNKNOWN)


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

    @functools.cached_property
    def absent(self) -> tuple[int, ...]:
        """Return the members of which there is no record, as far as the records of the others name the members."""
        named = max((state.ranks for state in self.states.values()), key=len)
        return tuple(sorted(named - self.states.keys()))

    @property
    def is_waiting(self) -> bool:
        """Return whether the members with a record wait for an operation that all of them enqueued."""
        return any(state.created is not None for state in self.states.values())

    @property
    def waits_for(self) -> str:
        """Return the last operation, as text."""
        operation = next((state.operation for state in self.states.values() if state.operation), "an operation")
        return f"{operation} {self.last} of group {self.name}"

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
    reports = [one for one in case.consequences if one.rule in TIMED_OUT]
    reporting = {_rank(one.rank, one.meaning.parts) for one in reports} - {-1}
    silent = sorted(set(case.evidence.ranks) - reporting)
    if reporting and silent and _few(silent, len(reporting) + len(silent)):
        others = f"{len(silent)} do not" if len(silent) > 1 else "1 does not"
        yield _candidate(case, "silent_rank", silent, f"{len(reporting)} ranks report a time-out, {others}")
        return
    for group, known in _enqueued_by_group(reports).items():
        least, most = min(known.values()), max(known.values())
        late = sorted(rank for rank, work in known.items() if work == least)
        if least < most and _few(late, len(known)):
            named = f" of group {group}" if group else ""
            yield _candidate(case, "late_rank", late, f"last enqueued work{named} {least}, that of others {most}")
            return


def _enqueued_by_group(reports: Iterable[Observation]) -> dict[str, dict[int, int]]:
    """Return the last enqueued work of each rank in each group, in the order of their first reports."""
    found: dict[str, dict[int, int]] = {}
    for one in reports:
        rank, work = _rank(one.rank, one.meaning.parts), int(one.meaning.parts.get("enqueued", "-1"))
        if rank >= 0 and work >= 0:
            found.setdefault(one.meaning.parts.get("group", ""), {})[rank] = work
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


def waiting_for_storage(case: Case) -> Iterator[Candidate]:
    """Blame the storage for which ranks wait, by their stacks in the kernel; no host where several wait for it."""
    words = next(words for layer, words in _WAITING if layer is Layer.STORAGE)
    frames = {one.rank: _first(one.kernel, words) for one in case.evidence.stacks}
    waiting = {one.rank: one.host for one in case.evidence.stacks if frames[one.rank]}
    several = len(set(waiting.values())) > 1
    if not waiting or (not several and len(waiting) * 2 < len(frames)):
        return  # few ranks of one host are late: odd_stacks
    rank = min(waiting)
    yield Candidate(
        rule="waiting_for_storage",
        failure=Failure.HANG,
        layer=Layer.STORAGE,
        certainty=Certainty.LIKELY,
        cause=f"rank {_listed(tuple(sorted(waiting)))} waits for a file system, in {frames[rank]}",
        action=JobAction.WAIT if several else JobAction.RESTART_WITHOUT,
        remedy="check the storage servers and the network to them" + ("; drain no host for it" if several else ""),
        suspects=() if several else (Suspect(host=waiting[rank], rank=rank),),
        because=(f"{len(waiting)} of {len(frames)} ranks, on {len(set(waiting.values()))} hosts",),
    )


def _first(frames: Iterable[str], words: Iterable[str]) -> str:
    """Return the innermost frame with one of the words; empty where there is none."""
    return next((frame for frame in frames if any(word in frame.lower() for word in words)), "")


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


HANGS: tuple[Callable[[Case], Iterator[Candidate]], ...] = (
    late_by_records, late_by_reports, waiting_for_storage, odd_stacks, unexplained,
)  # fmt: skip
