"""Rules that find the cause of a crash: each yields candidates. `docs/reference/attribution.md` has them in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from clusterctl.fleet.blame import Certainty, Failure, Layer, Persistence
from clusterctl.jobs.attribution import Candidate, JobAction, Suspect
from clusterctl.jobs.case import Case, shared
from clusterctl.jobs.evidence import BmcEvent, Observation, Source
from clusterctl.jobs.frameworks import does_not_fit, is_of_unknown_place, of_a_framework, of_the_loader

Rule = Callable[[Case], Iterator[Candidate]]
_FULL = frozenset({"disk_full"})
_FAILED = frozenset({"FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "COMPLETED"})
_RUNS = frozenset({"RUNNING", "SUSPENDED"})
_ORDERS = frozenset({"TIMEOUT", "CANCELLED", "PREEMPTED", "DEADLINE"})
_PAIRS = ("ib_retry_exceeded", "ib_completion", "nccl_qp", "nccl_connect")
_ON_ONE_GPU = ("cuda_illegal_access", "cuda_launch", "segfault", "xid_13", "xid_31")
_SERVICES = ("outside_service", "object_store", "container_start")
"""Not a part of one host: what all hosts use."""
_SWITCH_HOSTS = 3
_BMC = timedelta(minutes=10)


def broken_parts(case: Case) -> Iterator[Candidate]:
    """Blame the part of a host that reports its own error; many hosts at once: a switch, or the software they share."""
    found = [one for one in case.of_layers(Layer.HARDWARE, Layer.FABRIC, Layer.SYSTEM_SOFTWARE) if _of_a_part(one)]
    together = [near for near in shared(found, lambda one: one.rule) if _of_a_switch(near)]
    for near in together:
        hosts = _hosts(near)
        yield replace(
            _from("shared_fabric", near[0]),
            certainty=Certainty.LIKELY,
            cause=f"{len(hosts)} hosts lost their links at once: a switch, or a cable that they share",
            action=JobAction.WAIT,
            because=(f"within a minute on {_listed(hosts)}",),
        )
    same = [near for near in shared(found, lambda one: one.rule) if _of_all_hosts(case, near)]
    for near in same:
        hosts = _hosts(near)
        yield replace(
            _from("shared_software", near[0]),
            action=JobAction.STOP,
            because=(f"within a minute on {_listed(hosts)}: the same software or setting",),
        )
    shown = set(map(id, chain.from_iterable((*together, *same))))
    for one in found:
        if id(one) not in shown:
            yield replace(_from("broken_part", one), suspects=(_suspect(case, one),), because=_links(case, one))


def lost_nodes(case: Case) -> Iterator[Candidate]:
    """Blame the hardware of a node that the scheduler lost; the BMC proves it by an event at that time."""
    lines = {one.meaning.parts.get("node", ""): one for one in case.of_rules("slurm_node_failure")}
    named, silent = case.evidence.scheduler.failed_nodes, case.evidence.scheduler.silent_nodes
    # lines name the host that reports the end of a step, too: the nodes that the scheduler names are right
    for node in dict.fromkeys(named if named or silent else lines):
        yield _lost_node(case, node, lines.get(node))


def silent_daemons(case: Case) -> Iterator[Candidate]:
    """Blame the scheduler's daemon of a host that answers, while the daemon does not: in time the job ends by it."""
    ended = case.evidence.scheduler.state not in _RUNS
    for node in case.evidence.scheduler.silent_nodes:
        yield Candidate(
            rule="silent_daemon",
            failure=Failure.CRASH if ended else Failure.HANG,
            layer=Layer.SYSTEM_SOFTWARE,
            certainty=Certainty.LIKELY,
            cause=f"the scheduler's daemon on {node} does not answer",
            action=JobAction.RESTART_WITHOUT,
            remedy="read the log of slurmd on the node (journalctl -u slurmd), and start it again",
            suspects=(Suspect(host=node),),
            because=("the host itself answers",),
        )


def _lost_node(case: Case, node: str, line: Observation | None) -> Candidate:
    at = line.at if line and line.at else case.evidence.scheduler.ended
    events = _bmc_events(case, node, at)
    return Candidate(
        rule="lost_node",
        error=line.rule if line else "",
        failure=Failure.CRASH,
        layer=Layer.HARDWARE,
        certainty=Certainty.PROVEN if events else Certainty.LIKELY,
        cause=f"the scheduler lost the node {node or 'of which it gives no name'}",
        action=JobAction.RESTART_WITHOUT,
        remedy="read the BMC's event log and the power state of the node; restart without it",
        suspects=(Suspect(host=node),) if node else (),
        at=min((event.at for event in events), default=at),
        because=tuple(f"BMC of {event.host}: {event.text}" for event in events),
        first=line,
    )


def _bmc_events(case: Case, host: str, at: datetime | None) -> list[BmcEvent]:
    """Return the events of a host's BMC around a time; all of them where that is unknown."""
    return [one for one in case.evidence.bmc if one.host == host and (at is None or abs(one.at - at) <= _BMC)]


def storage(case: Case) -> Iterator[Candidate]:
    """Blame the storage, proven, for files that several hosts cannot use within a minute; of one host, its mount."""
    found = [one for one in case.of_layers(Layer.STORAGE) if one.rule not in (*_FULL, *_SERVICES)]
    several = tuple(shared(found, lambda one: one.meaning.blame.layer))
    for near in several:
        hosts = _hosts(near)
        yield replace(
            _from("shared_storage", near[0]),
            certainty=Certainty.PROVEN,
            cause=f"shared storage did not serve {len(hosts)} hosts",
            action=JobAction.WAIT,
            remedy="check the storage servers and the network to them; drain no host for it",
            because=(f"within a minute on {_listed(hosts)}",),
        )
    if not several:
        yield from (replace(_from("storage_of_one_host", one), suspects=(_suspect(case, one),)) for one in found[:1])
    for one in case.of_rules(*_FULL):
        yield replace(_from("storage_full", one), action=JobAction.STOP)


def services(case: Case) -> Iterator[Candidate]:
    """Blame a service outside of the job, and no host; a container that starts on all hosts but one, that host."""
    for one in case.of_rules("outside_service", "object_store")[:1]:
        yield replace(_from("outside_service", one), action=JobAction.RESTART)
    for one in case.of_rules("container_start")[:1]:
        hosts = _hosts(case.of_rules("container_start"))
        if len(hosts) == 1 and len(case.evidence.hosts) > 1:
            yield replace(_from("container_of_one_host", one), suspects=(_suspect(case, one),))
        else:
            yield replace(_from("container_start", one), action=JobAction.RESTART)


def memory(case: Case) -> Iterator[Candidate]:
    """Blame the application where kernel, scheduler or CUDA report that it used up its memory."""
    for one in case.of_layers(Layer.APPLICATION):
        if one.source is Source.KERNEL and one.rule == "kernel_node":
            yield replace(_from("host_memory", one), suspects=(_suspect(case, one),), action=JobAction.STOP)
    for one in (
        *case.of_rules("slurm_out_of_memory")[:1],
        *case.of_rules("cuda_out_of_memory", "nccl_cuda_memory")[:1],
    ):
        yield replace(_from("memory_used_up", one), action=JobAction.STOP)
    if case.evidence.scheduler.state == "OUT_OF_MEMORY" and not case.of_rules("slurm_out_of_memory"):
        yield Candidate(
            rule="memory_used_up",
            failure=Failure.CRASH,
            layer=Layer.APPLICATION,
            certainty=Certainty.PROVEN,
            cause="a task used more host memory than its job may",
            action=JobAction.STOP,
            remedy="give the job more memory (--mem), or use fewer data loader workers",
            persistence=Persistence.PERSISTENT,
            at=case.evidence.scheduler.ended,
            because=("the scheduler's state is OUT_OF_MEMORY",),
        )


def no_number(case: Case) -> Iterator[Candidate]:
    """Blame program or data for NaN at one step on several hosts; where it recurs on one host, silent corruption."""
    found = case.of_rules("nan")
    if found:
        iteration = _iteration(case, found)
        yield replace(_judged_nan(case, found, iteration), iteration=iteration)


def _judged_nan(case: Case, found: tuple[Observation, ...], iteration: int | None) -> Candidate:
    first, hosts = found[0], _hosts(found)
    same_step = [past for past in case.earlier("nan") if past.iteration is not None and past.iteration == iteration]
    elsewhere = next((past for past in same_step if past.hosts and {*hosts} - {*past.hosts}), None)
    if elsewhere is not None:
        because = f"job {elsewhere.job} had it at the same step on {_listed(elsewhere.hosts)}"
        return _nan(first, Layer.APPLICATION, Certainty.PROVEN, (because,))
    if len(hosts) > 1:
        return _nan(first, Layer.APPLICATION, Certainty.LIKELY, (f"on {len(hosts)} hosts: {_listed(hosts)}",))
    ranks = {_rank(one) for one in found} - {None}
    if hosts and ranks and all(one.host for one in found):
        return _nan_of_host(case, first, hosts[0])
    if ranks:
        unknown = "one rank, whose host is" if len(ranks) == 1 else f"{len(ranks)} ranks, whose hosts are"
        return _nan(first, Layer.UNKNOWN, Certainty.UNKNOWN, (f"of {unknown} not known",))
    return _nan(first, Layer.APPLICATION, Certainty.UNKNOWN, ("no rank reports it as its own",))


def _nan_of_host(case: Case, first: Observation, host: str) -> Candidate:
    again = [f"job {past.job} had it on this host, too" for past in case.earlier("nan") if host in past.hosts]
    certainty = Certainty.LIKELY if again else Certainty.UNKNOWN
    judged = _nan(first, Layer.HARDWARE, certainty, (f"on {host} alone", *again[:1]))
    return replace(judged, suspects=(_suspect(case, first),))


def gpu_or_program(case: Case) -> Iterator[Candidate]:
    """Blame the program for the same GPU error on several hosts; on a host that had it before, the host."""
    found = case.of_rules(*_ON_ONE_GPU)
    several = tuple(shared(found, lambda one: one.rule))
    for near in several:
        because = (f"within a minute on {_listed(_hosts(near))}",)
        yield replace(
            _from("same_error_on_hosts", near[0]),
            layer=Layer.APPLICATION,
            certainty=Certainty.LIKELY,
            action=JobAction.STOP,
            because=because,
        )
    if several:
        return
    for one in found[:1]:
        past = [earlier for earlier in case.earlier(one.rule) if one.host in earlier.hosts]
        if past and one.host:
            yield replace(
                _from("same_error_on_one_host", one),
                layer=Layer.HARDWARE,
                certainty=Certainty.LIKELY,
                action=JobAction.RESTART_WITHOUT,
                suspects=(_suspect(case, one),),
                because=(f"job {past[0].job} had it on {one.host}, too",),
            )
        else:
            yield replace(_from("error_of_a_program", one), action=JobAction.RESTART, suspects=(_suspect(case, one),))


def network_pairs(case: Case) -> Iterator[Candidate]:
    """Blame the host that most of the failed pairs of hosts share; else the pair."""
    failed = [(one, hosts) for one, hosts in _failed_pairs(case) if not hosts & case.own_errors]
    if not failed:
        return
    first, hosts = failed[0]
    pairs = {hosts for _, hosts in failed}
    most, times = _in_common(pairs)
    if times > 1:
        because = (f"{times} of {len(pairs)} pairs have {most} in common", *_counters(case, {most}))
        yield replace(_from("host_of_failed_pairs", first), suspects=(Suspect(host=most),), because=because)
        return
    peer = first.meaning.parts.get("peer", "")
    because = (f"between {first.host or 'a host'} and {peer or 'its peer'}", *_counters(case, hosts))
    suspects = tuple(Suspect(host=host) for host in sorted(hosts))
    yield replace(_from("failed_pair", first), suspects=suspects, because=because)


def _failed_pairs(case: Case) -> Iterator[tuple[Observation, frozenset[str]]]:
    """Yield the lines that report a failed connection, each with the known hosts at its ends."""
    for one in case.of_rules(*_PAIRS):
        yield one, frozenset({one.host, case.host_of(one.meaning.parts.get("peer", ""))} - {""})


def _in_common(pairs: Iterable[frozenset[str]]) -> tuple[str, int]:
    """Return the host that is in more pairs than any other one, and in how many; ("", 0) where there is none."""
    counts = Counter(chain.from_iterable(pairs)).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return "", 0
    return counts[0]


def programs(case: Case) -> Iterator[Candidate]:
    """Blame broken files, the data loader, the program for an exception (proven on several ranks), the framework."""
    for one in case.of_rules("broken_file")[:1]:
        yield replace(_from("broken_file", one), action=JobAction.STOP)
    for one in case.of_rules("data_loader")[:1]:
        yield replace(_from("data_loader", one), action=JobAction.STOP, suspects=(_suspect(case, one),))
    exceptions = case.of_rules("python_exception")
    for one in (one for one in exceptions[:1] if of_the_loader(one.meaning.parts)):
        cause = f"the data loader raised {one.meaning.parts['exception']}"
        remedy = "look at the limits of open files and processes, and at /dev/shm; use fewer workers"
        found = replace(_from("data_loader", one), layer=Layer.DATA, cause=cause, remedy=remedy, action=JobAction.STOP)
        yield replace(found, suspects=(_suspect(case, one),))
    own = [one for one in exceptions[:1] if of_a_framework(one.meaning.parts) or does_not_fit(one.meaning.parts)]
    for one in (*case.of_layers(Layer.FRAMEWORK), *own)[:1]:
        yield _of_a_framework(case, one)
    if exceptions and not own:
        yield _exception(exceptions)
    for one in case.of_rules("port_in_use")[:1]:
        yield replace(_from("error_of_a_program", one), action=JobAction.RESTART)
    for one in case.of_rules("ib_remote_access", "nccl_usage", "no_program", "slurm_step_refused", "slurm_job_refused")[
        :1
    ]:
        yield replace(_from("error_of_a_program", one), action=JobAction.STOP)


def _of_a_framework(case: Case, one: Observation) -> Candidate:
    """Return the framework as the cause: it restarts once, and asks when an earlier attempt had it, too.

    What does not fit now will not fit in the next attempt.
    """
    found, parts, again = _from("framework", one), one.meaning.parts, bool(case.earlier(one.rule))
    if does_not_fit(parts):
        cause = f"{parts['exception']}: an installed package does not fit another one: {parts['frame'][-80:]}"
        remedy = "install releases that fit each other; job diff shows what has changed since it ran"
        found = replace(found, layer=Layer.FRAMEWORK, certainty=Certainty.LIKELY, cause=cause, remedy=remedy)
        found = replace(found, persistence=Persistence.PERSISTENT)
    elif "frame" in parts:
        cause = f"{parts.get('exception', '')} in the framework's own code: {parts['frame'][-80:]}"
        remedy = "restart once; where it comes back, look for a fixed release of the framework"
        found = replace(found, layer=Layer.FRAMEWORK, certainty=Certainty.LIKELY, cause=cause, remedy=remedy)
    return replace(
        found,
        action=JobAction.STOP if again or found.persistence is Persistence.PERSISTENT else JobAction.RESTART,
        because=("an earlier attempt had it, too",) if again else (),
    )


def _exception(exceptions: tuple[Observation, ...]) -> Candidate:
    kind = exceptions[0].meaning.parts.get("exception", "")
    ranks = {one.rank for one in exceptions if one.meaning.parts.get("exception", "") == kind} - {None}
    several = len(ranks) > 1
    if is_of_unknown_place(exceptions[0].meaning.parts):
        return replace(
            _from("exception", exceptions[0]),
            layer=Layer.UNKNOWN,
            certainty=Certainty.UNKNOWN,
            cause=f"the program, or a library that it uses, raised {kind}: its traceback is missing",
            action=JobAction.STOP,
            remedy="read the traceback in the rank's own log: its last frame shows whose code raised it",
        )
    return replace(
        _from("exception", exceptions[0]),
        certainty=Certainty.PROVEN if several else Certainty.LIKELY,
        cause=f"the program raised {kind}",
        action=JobAction.STOP,
        because=(f"on {len(ranks)} ranks",) if several else (),
    )


def orders(case: Case) -> Iterator[Candidate]:
    """Report the order with which the scheduler ended the job: time limit, cancellation, pre-emption.

    Where the scheduler records that the job failed, or runs, there was none: srun cancels a step of which a rank has
    failed. Where only its logs are known, a cancelled step is therefore likely, not proven, to be an order; it is none
    where srun reports a failed rank before.
    """
    facts = case.evidence.scheduler
    if facts.state in _FAILED | _RUNS:
        return
    found = case.of_layers(Layer.SCHEDULER)
    if found:
        one = next((one for one in found if not _is_of_a_step(one)), found[0])
        if _is_of_a_step(one) and facts.state not in _ORDERS and _rank_failed_before(case, one):
            return
        sure = facts.state in _ORDERS or not _is_of_a_step(one)
        certainty = Certainty.PROVEN if sure else Certainty.LIKELY
        yield replace(_from("ended_by_order", one), certainty=certainty, action=JobAction.NOTHING)
        return
    if facts.state in _ORDERS:
        yield Candidate(
            rule="ended_by_order",
            failure=Failure.ENDED,
            layer=Layer.SCHEDULER,
            certainty=Certainty.PROVEN,
            cause=f"the scheduler ended the job: {facts.state}",
            action=JobAction.NOTHING,
            remedy="restart from the last checkpoint where the job is not done",
            persistence=Persistence.TRANSIENT,
            at=facts.ended,
        )


def _is_of_a_step(one: Observation) -> bool:
    """Return True for a cancelled step without a reason: scancel ends it so, and srun after a failed rank."""
    return one.meaning.parts.get("unit") == "STEP"


def _rank_failed_before(case: Case, step: Observation) -> bool:
    """Return True where srun reports that a rank ended with an error, and not after the step was cancelled."""
    failed = [one for one in case.consequences if one.rule == "slurm_task_failed"]
    return any(not _is_written_after(one, step) for one in failed if one.meaning.parts.get("status") != "0")


def _is_written_after(one: Observation, other: Observation) -> bool:
    """Return True for lines of one log of which the second one comes first."""
    here, there = one.position, other.position
    return here is not None and there is not None and here[0] == there[0] and here[1] > there[1]


CAUSES: tuple[Rule, ...] = (
    broken_parts, lost_nodes, silent_daemons, storage, services, memory, no_number, gpu_or_program, network_pairs,
    programs, orders,
)  # fmt: skip


def _of_a_part(one: Observation) -> bool:
    """Return True where no other rule of this module judges the line."""
    return one.rule not in (*_ON_ONE_GPU, *_PAIRS, *_SERVICES, "slurm_node_failure", "nan")


def _from(rule: str, one: Observation) -> Candidate:
    """Return a candidate that rests on a line, as its meaning gives it."""
    blame = one.meaning.blame
    return Candidate(
        rule=rule,
        error=one.rule,
        failure=one.meaning.failure,
        layer=blame.layer,
        certainty=blame.certainty,
        persistence=blame.persistence,
        cause=one.meaning.meaning,
        remedy=one.meaning.remedy,
        action=JobAction.RESTART_WITHOUT,
        at=one.at,
        first=one,
    )


def _nan(first: Observation, layer: Layer, certainty: Certainty, because: tuple[str, ...]) -> Candidate:
    hardware = layer is Layer.HARDWARE
    what = "a host computes wrongly (silent corruption)" if hardware else "the program or its data"
    what = "program, data or a host" if layer is Layer.UNKNOWN else what
    return replace(
        _from("no_number", first),
        layer=layer,
        certainty=certainty,
        action=JobAction.RESTART_WITHOUT if hardware else JobAction.STOP,
        cause=f"a loss or gradient is no number: {what}",
        because=because,
    )


def _suspect(case: Case, one: Observation) -> Suspect:
    parts = one.meaning.parts
    rank = _rank(one)
    host = one.host or (case.evidence.ranks.get(rank, "") if rank is not None else "") or parts.get("node", "")
    named = next((f"{name} {parts[name]}" for name in _PARTS if name in parts), "")
    return Suspect(host=host, part=named, rank=rank)


def _rank(one: Observation) -> int | None:
    if one.rank is not None:
        return one.rank
    return int(one.meaning.parts["rank"]) if "rank" in one.meaning.parts else None


_PARTS = ("gpu", "nvswitch", "hca", "nic", "nvme", "drive", "memory", "pci", "device")


def _iteration(case: Case, found: Iterable[Observation]) -> int | None:
    """Return the step of the error: as its line names it, else the one after the last that was made."""
    named = next((one.meaning.parts["iteration"] for one in found if "iteration" in one.meaning.parts), None)
    if named is not None:
        return int(named)
    return case.evidence.progress.iteration + 1 if case.evidence.progress else None


def _of_a_switch(near: tuple[Observation, ...]) -> bool:
    return near[0].meaning.blame.layer is Layer.FABRIC and len(_hosts(near)) >= _SWITCH_HOSTS


def _of_all_hosts(case: Case, near: tuple[Observation, ...]) -> bool:
    """Return True for software that fails on most hosts of a job: no host is to blame, and others have it, too."""
    hosts = _hosts(near)
    of_software = near[0].meaning.blame.layer is Layer.SYSTEM_SOFTWARE and near[0].source is Source.JOB
    return of_software and len(hosts) >= _SWITCH_HOSTS and 2 * len(hosts) > len(case.evidence.hosts)


def _hosts(found: Iterable[Observation]) -> list[str]:
    return sorted({one.host for one in found} - {""})


def _links(case: Case, one: Observation) -> tuple[str, ...]:
    return _counters(case, {one.host}) if one.meaning.blame.layer is Layer.FABRIC else ()


def _counters(case: Case, hosts: Collection[str]) -> tuple[str, ...]:
    risen = [one for one in case.evidence.links if one.host in hosts and one.increase > 0]
    return tuple(f"{one.counter} of {one.host} {one.device} rose by {one.increase}" for one in risen[:4])


def _listed(hosts: Iterable[str]) -> str:
    names = list(hosts)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
