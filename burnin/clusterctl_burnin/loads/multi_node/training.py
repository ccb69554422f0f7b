"""training: a group trains a transformer for a minute (PyTorch's DistributedDataParallel), and each rank is timed.

In a step all ranks wait for the slowest one, so that the time of a step names no node. Each rank therefore measures its
own work, up to the moment when its last gradient is ready for the sum. A node is as slow as its slowest rank, and is
compared with the median of the group's nodes. What slows the sum itself (the fabric) is judged by `all_reduce`; its
time is in the detail.

It has run on processors with gloo; it has never run on GPUs with NCCL.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.training_group import TrainingResult, parse_training
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.loads import torch_group
from clusterctl_burnin.loads.group_load import GroupLoad, GroupSizes, Lasts
from clusterctl_burnin.loads.model import Answer, Participant, Round, TrialOutcome, Tried

NAME = "training"
TRAINING_SPEED_MIN = LimitKey(
    "training_speed_min",
    "%",
    default=90,
    source="own choice: the speed of a node's slowest rank against the median node of its group; all ranks of a "
    "synchronous training wait for it in each step",
)


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """Return one trial for the whole group; a slow one names the slow nodes."""
    names = [member.name for member in one.members]
    ranks_per_node, floor = limits.methods.training.ranks_per_node, limits[TRAINING_SPEED_MIN].value
    return torch_group.read(one, answers, ranks_per_node, lambda stdout: judged(names, stdout, ranks_per_node, floor))


def judged(names: Sequence[str], stdout: str, ranks_per_node: int, floor: float) -> torch_group.Result:
    """Return the result of a training that came to its end. Its figure is the speed of the slowest node, in % of the
    median node's; `floor` likewise.
    """
    try:
        result = parse_training(stdout)
    except ParseError as error:
        return torch_group.Result(TrialOutcome.UNMEASURED, None, str(error))
    wanted = len(names) * ranks_per_node
    if len(result.ranks) != wanted:
        return torch_group.Result(TrialOutcome.UNMEASURED, None, f"{len(result.ranks)} of {wanted} ranks took part")
    slowest = [
        max(range(node * ranks_per_node, (node + 1) * ranks_per_node), key=lambda rank: result.ranks[rank].own_ms)
        for node in range(len(names))
    ]
    median = statistics.median_low(result.ranks[rank].own_ms for rank in slowest)
    speeds = {name: 100 * median / result.ranks[rank].own_ms for name, rank in zip(names, slowest, strict=True)}
    slow = tuple(name for name, speed in speeds.items() if speed < floor)
    shown = slow or (min(speeds, key=lambda name: speeds[name]),)
    detail = "; ".join(_story(name, slowest[names.index(name)], speeds[name], result) for name in shown)
    outcome = TrialOutcome.SLOW if slow else TrialOutcome.PASSED
    detail = f"{detail}; median node {median:.3g} ms; the sum takes {result.sum_ms:.3g} ms; {result.steps} steps"
    return torch_group.Result(outcome, min(speeds.values()), detail, slow)


def _story(name: str, rank: int, speed: float, result: TrainingResult) -> str:
    times = result.ranks[rank]
    return (
        f"{name} has {speed:.3g} % of the median node's speed: its rank {rank} works {times.own_ms:.3g} ms and waits "
        f"{times.wait_ms:.3g} ms in a step"
    )


def _sizes(limits: Limits) -> GroupSizes:
    method = limits.methods.training
    return GroupSizes(method.min_nodes, method.group_nodes)


def _job(members: tuple[Participant, ...], limits: Limits, lasts: Lasts, user: str) -> Round:
    """Return a round. It lasts as long as its method sets: the suite's iterations are those of sums."""
    del lasts
    method = limits.methods.training
    run = torch_group.TorchRun(
        python=limits.methods.gpu_load.python,
        backend=method.backend,
        ranks=method.ranks_per_node,
        message_bytes=0,
        iterations=0,
        seconds=method.seconds,
        stall=float(method.stall_seconds),
        limit=float(method.seconds + 2 * method.stall_seconds),
        trains=torch_group.Transformer(method.layers, method.width, method.sequence, method.batch),
    )
    return torch_group.group(NAME, members, run, user)


LOAD = GroupLoad(
    name=NAME,
    limit=TRAINING_SPEED_MIN,
    remedy="compare the clocks, throttle reasons, PCIe links and temperatures of its GPUs, its processors' power "
    "profile and quota, and its other processes with those of a node that is fast",
    sizes=_sizes,
    job=_job,
    read=read,
)
