"""Work of a group over PyTorch, sums or a training: what each member runs, and the trials in their answers.

The members meet at the address of the first one, the head. Each rank reports its progress there, so that the head can
name the missing ranks of a group that hangs (node/programs/torch_group.py). It has run on processors with gloo; it has
never run on GPUs with NCCL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Literal

from clusterctl.formats.nvidia.collectives import Stopped, parse_stopped
from clusterctl_burnin.loads.group_load import not_led
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole, Round, Trial, TrialOutcome, Tried
from clusterctl_burnin.loads.nccl_outcome import measured
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status, argv_for, script
from clusterctl_burnin.sweep import at_most
from clusterctl_burnin.tools import PYTORCH

PORT = 29500
START = 120.0
"""Seconds within which every rank has to come: PyTorch alone may take half a minute from a network file system."""
KILLING = 30.0
"""Seconds that the program is left for its own end, before it is killed from outside."""
_NO_PYTHON, _NO_TORCH = 127, 6


@dataclass(frozen=True, slots=True)
class Transformer:
    """What a group trains: layers, their width, and each rank's sequences of a step."""

    layers: int
    width: int
    sequence: int
    batch: int


@dataclass(frozen=True, slots=True)
class TorchRun:
    """`seconds` 0: as many `iterations`. `stall`: seconds without a step, after which it hangs. `limit`: of it all.

    `trains`: what is trained for `seconds`; None: the group sums a message instead.
    """

    python: str
    backend: Literal["gloo", "nccl"]
    ranks: int
    message_bytes: int
    iterations: int
    seconds: int
    stall: float
    limit: float
    trains: Transformer | None = None


def group(load: str, members: Sequence[Participant], run: TorchRun, user: str) -> Round:
    """Return a round of all `members`: each runs its own ranks; the first one leads."""
    commands: dict[str, Command] = {}
    timeout = 0.0
    for number, member in enumerate(members):
        probe = Probe(load, _argv(members, number, run), timeout=START + run.limit + KILLING)
        role = ProcessRole.CLIENT if number else ProcessRole.HEAD
        commands[member.name] = Command(role, argv_for(user, privileged=False), script([probe]))
        timeout = at_most([probe])
    return Round(load, tuple(members), commands, timeout)


def _argv(members: Sequence[Participant], number: int, run: TorchRun) -> tuple[str, ...]:
    options = {
        "python": run.python,
        "backend": run.backend,
        "nodes": len(members),
        "node": number,
        "ranks": run.ranks,
        "head": members[0].address,
        "port": PORT,
        "bytes": run.message_bytes,
        "iterations": run.iterations,
        "seconds": run.seconds,
        "stall": f"{run.stall:g}",
        "start": f"{START:g}",
        "limit": f"{START + run.limit:g}",
        "interface": members[number].interface,
        "devices": ",".join(members[number].devices),
        **(asdict(run.trains) if run.trains else {}),
    }
    return ("torch-group", *(word for name, value in options.items() for word in (f"--{name}", str(value))))


@dataclass(frozen=True, slots=True)
class Result:
    """What a group's output shows once it came to its end. `missing`: the nodes that the others waited for."""

    outcome: TrialOutcome
    value: float | None
    detail: str
    missing: tuple[str, ...] = ()


Judge = Callable[[str], Result]
"""From the head's output."""


def read_sum(one: Round, answers: Mapping[str, Answer], ranks_per_node: int, floor: float) -> Tried:
    """Return one trial for the whole group; `floor` in GB/s, 0 where no figure is judged."""
    nodes = len(one.members)

    def judge(stdout: str) -> Result:
        return Result(*measured(stdout, nodes, nodes * ranks_per_node, floor))

    return read(one, answers, ranks_per_node, judge)


def read(one: Round, answers: Mapping[str, Answer], ranks_per_node: int, judge: Judge) -> Tried:
    """Return one trial for the whole group, which `judge` judges where it came to its end."""
    names = tuple(member.name for member in one.members)
    head = answers.get(names[0], "it was not asked")
    if isinstance(head, str):
        return not_led(one.load, names, head)
    answered = [answer for answer in answers.values() if isinstance(answer, Readings)]
    results = [answer.probes[one.load] for answer in answered if one.load in answer.probes]
    result, remedy = _judged(one, head.probes.get(one.load), results, ranks_per_node, judge)
    digests = tuple(digest for answer in answered for digest in answer.digests([Probe(one.load, ())]))
    trial = Trial(
        load=one.load,
        members=names,
        outcome=result.outcome,
        lane={},
        value=result.value,
        detail=result.detail,
        evidence=digests,
        remedy=remedy,
        missing=result.missing,
    )
    evidence = chain.from_iterable(answer.evidence().values() for answer in answered)
    return Tried((trial,), tuple(evidence))


def _judged(
    one: Round,
    head: ProbeResult | None,
    results: Sequence[ProbeResult],
    ranks_per_node: int,
    judge: Judge,
) -> tuple[Result, str]:
    """Return the result, and the remedy where it is known."""
    lacking = [result for result in results if result.rc in (_NO_PYTHON, _NO_TORCH)]
    if lacking:
        return Result(TrialOutcome.UNMEASURED, None, lacking[0].error_output), PYTORCH
    if head is None or head.status is Status.MISSING:
        return Result(TrialOutcome.UNMEASURED, None, f"{one.members[0].name} did not run it"), ""
    if head.status is Status.OK and head.rc == 0:
        return judge(head.stdout), ""
    stopped = _stopped(results)
    hung = head.status is Status.TIMEOUT or stopped.stalled
    words = _named(one, stopped, ranks_per_node) or head.error_output
    missing = _nodes([member.name for member in one.members], stopped, ranks_per_node)
    return Result(TrialOutcome.HUNG if hung else TrialOutcome.FAILED, None, words, missing), ""


def _stopped(results: Sequence[ProbeResult]) -> Stopped:
    return parse_stopped("\n".join(result.stdout for result in results))


def _nodes(names: Sequence[str], stopped: Stopped, ranks_per_node: int) -> tuple[str, ...]:
    """Return the nodes of the missing ranks; a failed rank may have failed for want of them, and is not named."""
    numbers = {rank // ranks_per_node for rank, _ in stopped.missing}
    return tuple(names[number] for number in sorted(numbers) if number < len(names))


def _named(one: Round, stopped: Stopped, ranks_per_node: int) -> str:
    """Return the missing ranks, then those that failed for want of them; each with its node."""
    return "; ".join(
        f"rank {rank} on {one.members[rank // ranks_per_node].name}: {why}"
        for rank, why in (stopped.missing or stopped.failed)
        if rank // ranks_per_node < len(one.members)
    )
