"""hang_hunt: a group of nodes sums for hours, as a training job would, until it hangs; the missing ranks are named.

By PyTorch, since nccl-tests neither runs for a time nor reports how far each rank is. The missing ranks of a hang are
evidence against their nodes alone. The hunt measures these nodes again among others before it is sure. No figure
is judged; a wrong sum is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads import torch_group
from clusterctl_burnin.loads.group_load import GroupLoad, GroupSizes, Lasts
from clusterctl_burnin.loads.model import Answer, Participant, Round, Tried

NAME = "hang_hunt"


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    return torch_group.read_sum(one, answers, limits.methods.hang_hunt.ranks_per_node, 0.0)


def _sizes(limits: Limits) -> GroupSizes:
    method = limits.methods.hang_hunt
    return GroupSizes(method.min_nodes, method.group_nodes)


def _job(members: tuple[Participant, ...], limits: Limits, lasts: Lasts, user: str) -> Round:
    method = limits.methods.hang_hunt
    seconds = lasts.hang_seconds or method.seconds
    run = torch_group.TorchRun(
        python=limits.methods.gpu_load.python,
        backend=method.backend,
        ranks=method.ranks_per_node,
        message_bytes=method.message_bytes,
        iterations=1,
        seconds=seconds,
        stall=float(method.stall_seconds),
        limit=float(seconds + 2 * method.stall_seconds),
    )
    return torch_group.group(NAME, members, run, user)


LOAD = GroupLoad(
    name=NAME,
    limit=None,
    remedy="check the node's kernel log, GPUs and adapters at the time of the hang; power it off and on",
    sizes=_sizes,
    job=_job,
    read=read,
)
