"""all_reduce_rail: a group of nodes sums a buffer on each rail by itself, all rails at once, so that a rail is blamed.

One mpirun for each rail, with one rank a node: the GPU nearest to the rail's adapter, and no other adapter. The load on
the fabric is that of nccl-tests' NCCL_TESTS_SPLIT_MASK=0x7, which shows less: it prints the table of the first group
alone, and its times are the average over the ranks of all groups (src/common.cu of github.com/NVIDIA/nccl-tests), so
that a slow rail has no figure of its own. With one rank a node the bus bandwidth is what each adapter carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.limits.methods import RailMethod
from clusterctl_burnin.loads import mpi
from clusterctl_burnin.loads.group_load import GroupLoad, GroupSizes, Lasts, not_led
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole, Round, Trial, TrialOutcome, Tried
from clusterctl_burnin.loads.nccl_outcome import Judged, outcome
from clusterctl_burnin.probe import Probe, Readings, argv_for, script
from clusterctl_burnin.sweep import at_most

ALL_REDUCE_RAIL_BUSBW_MIN = LimitKey("all_reduce_rail_busbw_min", "GB/s")

NAME = "all_reduce_rail"
_NO_GPU = "read nvidia-smi topo -m on the node: it does not show which GPU is nearest to the adapter"


def rails(members: Sequence[Participant], method: RailMethod, interface: str, user: str) -> Round:
    """Return a round of all `members`; the first leads each rail that all have. `interface`: for MPI's messages."""
    probes = [
        Probe(_name(rail), _argv(members, rail, method, interface, user), timeout=float(method.timeout_seconds))
        for rail in range(_shared(members))
        if not _without_gpu(members, rail)
    ]
    command = Command(ProcessRole.HEAD, argv_for(user, privileged=False), script(probes, parallel=max(1, len(probes))))
    return Round(NAME, tuple(members), {members[0].name: command}, at_most(probes, parallel=max(1, len(probes))))


def _argv(members: Sequence[Participant], rail: int, method: RailMethod, interface: str, user: str) -> tuple[str, ...]:
    def variables(member: Participant) -> Mapping[str, str]:
        gpu = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(member.gpus[rail])}
        return {**mpi.nccl_variables(member, member.devices[rail : rail + 1], len(members)), **gpu}

    runs = mpi.mpirun(members, 1, user, interface, variables)
    return runs(mpi.all_reduce_perf(method.message_bytes, method.iterations))


def _shared(members: Sequence[Participant]) -> int:
    return min(len(member.devices) for member in members)


def _without_gpu(members: Sequence[Participant], rail: int) -> list[str]:
    return [m.name for m in members if rail >= len(m.gpus) or m.gpus[rail] is None]


def _name(rail: int) -> str:
    return f"{NAME}{rail}"


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """Return one trial per rail, of the whole group."""
    names = tuple(member.name for member in one.members)
    answer = answers.get(names[0], "it was not asked")
    if isinstance(answer, str):
        return not_led(NAME, names, answer)
    return Tried(tuple(_trials(one, answer, limits)), tuple(answer.evidence().values()))


def _trials(one: Round, answer: Readings, limits: Limits) -> Iterator[Trial]:
    for bare in (m for m in one.members if not m.devices):
        yield Trial(NAME, (bare.name,), TrialOutcome.UNMEASURED, {}, detail="it shows no InfiniBand device")
    names = tuple(member.name for member in one.members)
    for rail in range(_shared(one.members)):
        result, value, detail = _outcome(one, rail, answer, limits)
        yield Trial(
            load=NAME,
            members=names,
            outcome=result,
            lane={member.name: member.devices[rail] for member in one.members},
            rail=rail,
            value=value,
            detail=detail,
            evidence=answer.digests([Probe(_name(rail), ())]),
            remedy=_NO_GPU if _without_gpu(one.members, rail) else "",
        )


def _outcome(one: Round, rail: int, answer: Readings, limits: Limits) -> Judged:
    lacking = _without_gpu(one.members, rail)
    if lacking:
        return TrialOutcome.UNMEASURED, None, f"no GPU is known to be near the adapter of {', '.join(lacking)}"
    nodes = len(one.members)
    return outcome(
        one.members[0].name, answer.probes.get(_name(rail)), nodes, nodes, limits[ALL_REDUCE_RAIL_BUSBW_MIN].value
    )


def _sizes(limits: Limits) -> GroupSizes:
    method = limits.methods.all_reduce_rail
    return GroupSizes(method.min_nodes, method.group_nodes, method.widest_nodes)


def _job(members: tuple[Participant, ...], limits: Limits, lasts: Lasts, user: str) -> Round:
    return rails(
        members, lasts.stretched(limits.methods.all_reduce_rail), limits.methods.all_reduce.mpi_interface, user
    )


LOAD = GroupLoad(
    name=NAME,
    limit=ALL_REDUCE_RAIL_BUSBW_MIN,
    remedy="check the adapter's PCIe link and cable, and its nearest GPU; reseat the cable, then the adapter",
    sizes=_sizes,
    job=_job,
    read=read,
    by_rail=True,
)
