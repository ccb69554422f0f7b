"""all_reduce: a group of nodes sums a large buffer together (nccl-tests' all_reduce_perf, started by mpirun on one,
or PyTorch on each).

One rank per GPU. mpirun logs in to the other members with the nodes' own keys. A time-out is the result HUNG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.limits.methods import AllReduceMethod
from clusterctl_burnin.loads import mpi, torch_group
from clusterctl_burnin.loads.group_load import GroupLoad, GroupSizes, Lasts, not_led
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole, Round, Trial, Tried
from clusterctl_burnin.loads.nccl_outcome import Judged, outcome
from clusterctl_burnin.probe import Probe, ProbeResult, argv_for, script
from clusterctl_burnin.sweep import at_most

ALL_REDUCE_BUSBW_MIN = LimitKey("all_reduce_busbw_min", "GB/s")

NAME = "all_reduce"


def group(members: Sequence[Participant], method: AllReduceMethod, user: str) -> Round:
    """Return a round of all `members`; the first one leads."""
    head = members[0]
    probe = Probe(NAME, _argv(members, method, user), timeout=float(method.timeout_seconds))
    command = Command(ProcessRole.HEAD, argv_for(user, privileged=False), script([probe]))
    return Round(NAME, tuple(members), {head.name: command}, at_most([probe]))


def _argv(members: Sequence[Participant], method: AllReduceMethod, user: str) -> tuple[str, ...]:
    def variables(member: Participant) -> Mapping[str, str]:
        return mpi.nccl_variables(member, member.devices, len(members))

    runs = mpi.mpirun(members, method.ranks_per_node, user, method.mpi_interface, variables)
    return runs(mpi.all_reduce_perf(method.message_bytes, method.iterations))


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """Return one trial for the whole group."""
    if limits.methods.all_reduce.engine == "torch":
        return torch_group.read_sum(
            one, answers, limits.methods.all_reduce.ranks_per_node, limits[ALL_REDUCE_BUSBW_MIN].value
        )
    names = tuple(member.name for member in one.members)
    answer = answers.get(names[0], "it was not asked")
    if isinstance(answer, str):
        return not_led(NAME, names, answer)
    result, value, detail = _outcome(one, answer.probes.get(NAME), limits)
    digests = answer.digests([Probe(NAME, ())])
    trial = Trial(NAME, names, result, {}, value=value, detail=detail, evidence=digests)
    return Tried((trial,), tuple(answer.evidence().values()))


def _outcome(one: Round, result: ProbeResult | None, limits: Limits) -> Judged:
    nodes = len(one.members)
    ranks = nodes * limits.methods.all_reduce.ranks_per_node
    return outcome(one.members[0].name, result, nodes, ranks, limits[ALL_REDUCE_BUSBW_MIN].value)


def _sizes(limits: Limits) -> GroupSizes:
    method = limits.methods.all_reduce
    return GroupSizes(method.min_nodes, method.group_nodes, method.widest_nodes)


def _job(members: tuple[Participant, ...], limits: Limits, lasts: Lasts, user: str) -> Round:
    """Return the method of the limits, or with the suite's iterations and as much more time."""
    method = lasts.stretched(limits.methods.all_reduce)
    if method.engine == "nccl_tests":
        return group(members, method, user)
    run = torch_group.TorchRun(
        python=limits.methods.gpu_load.python,
        backend=method.backend,
        ranks=method.ranks_per_node,
        message_bytes=method.message_bytes,
        iterations=method.iterations,
        seconds=0,
        stall=float(method.timeout_seconds),
        limit=float(method.timeout_seconds),
    )
    return torch_group.group(NAME, members, run, user)


LOAD = GroupLoad(
    name=NAME,
    limit=ALL_REDUCE_BUSBW_MIN,
    remedy="check the node's GPUs, NVLinks and kernel log; run its checks again, then power it off and on",
    sizes=_sizes,
    job=_job,
    read=read,
)
