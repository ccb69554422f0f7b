"""ib_write_bw: two nodes write to each other's memory over every rail at once, each rail with a server and a client.

Both ends of a rail are the same rail's device. The client repeats its call until the server listens, so both may be
started together. Limits hold for the message size and count in the limits file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.loads.group_load import GroupLoad, GroupSizes, Lasts
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole, Round, Trial, TrialOutcome, Tried
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status, argv_for, script
from clusterctl_burnin.sweep import at_most

IB_WRITE_BW_MIN = LimitKey("ib_write_bw_min", "Gb/s")

NAME = "ib_write_bw"
FIRST_PORT = 18515
_CONNECT_FAILED = "Couldn't connect to"
_WITHOUT_CUDA = re.compile(r"unrecognized option '--use_cuda|^ Unsupported memory type", re.MULTILINE)
"""Message of perftest without CUDA: 4.5 (recorded), and since it always knows the option (perftest_parameters.c)."""
_BUILD = (
    "install a perftest that is built with CUDA (role ofed with NVIDIA's repository, or one built on site), or take "
    "gpu_memory out of methods.ib_write_bw in the limits file"
)
_NO_GPU = "read nvidia-smi topo -m on the node: it does not show which GPU is nearest to the adapter"


def pair(server: Participant, client: Participant, method: PairMethod, user: str, seconds: int | None = None) -> Round:
    """Return a round of two: what each runs, as `user`; for `seconds`, or with the messages of the method.

    perftest's `-D` takes the place of `-n`, and both ends must get the same
    (https://github.com/linux-rdma/perftest/blob/master/man/perftest.1).
    """
    both = (server, client)
    shared = range(min(len(server.devices), len(client.devices)))
    rails = [rail for rail in shared if not without_gpu(both, rail, method)]
    servers = [write_probe(_name(rail), server, rail, method, Meeting(rail), seconds) for rail in rails]
    clients = [write_probe(_name(rail), client, rail, method, Meeting(rail, server.address), seconds) for rail in rails]
    argv = argv_for(user, privileged=False)
    commands = {
        server.name: Command(ProcessRole.SERVER, argv, script(servers, parallel=len(servers))),
        client.name: Command(ProcessRole.CLIENT, argv, script(clients, parallel=len(clients))),
    }
    return Round(NAME, both, commands, at_most(servers, parallel=max(1, len(servers))))


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where both ends of a flow meet: at the port of the server's rail. `server`: its address; None at the server."""

    rail: int
    server: str | None = None


def write_probe(
    name: str, member: Participant, rail: int, method: PairMethod, meeting: Meeting, seconds: int | None
) -> Probe:
    """Return what one end of a flow runs, on its own device of `rail`."""
    argv = [NAME, "-d", member.devices[rail], "-p", str(FIRST_PORT + meeting.rail)]
    length = ["-n", str(method.iterations)] if seconds is None else ["-D", str(seconds)]
    argv += ["-s", str(method.message_bytes), *length, *_memory(member, rail, method), "-F", "--report_gbits"]
    if rail < len(member.gids) and member.gids[rail] is not None:
        argv += ["-x", str(member.gids[rail])]
    if meeting.server is not None:
        argv.append(meeting.server)
    return Probe(name, tuple(argv), timeout=float(method.timeout_seconds + (seconds or 0)), retry_on=_CONNECT_FAILED)


def _memory(member: Participant, rail: int, method: PairMethod) -> tuple[str, ...]:
    """Return the options for the memory of host or GPU; perftest wants the GPU before the way to it."""
    if method.gpu_memory == "none":
        return ()
    gpu = f"--use_cuda={member.gpus[rail]}"
    return (gpu, "--use_cuda_dmabuf") if method.gpu_memory == "dmabuf" else (gpu,)


def without_gpu(members: Sequence[Participant], rail: int, method: PairMethod) -> list[str]:
    """Return the members without the GPU that the method wants at the adapter."""
    if method.gpu_memory == "none":
        return []
    return [m.name for m in members if rail >= len(m.gpus) or m.gpus[rail] is None]


def _name(rail: int) -> str:
    return f"{NAME}_rail{rail}"


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """Return one trial per rail; the client's table has the bandwidth."""
    readings = [answer for answer in answers.values() if isinstance(answer, Readings)]
    evidence = tuple(e for r in readings for e in r.evidence().values())
    return Tried(tuple(_trials(one, answers, limits)), evidence)


def _trials(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Iterator[Trial]:
    server, client = one.members
    for bare in (m for m in one.members if not m.devices):
        yield Trial(NAME, (bare.name,), TrialOutcome.UNMEASURED, {}, detail="it shows no InfiniBand device")
    for rail, (theirs, ours) in enumerate(zip(server.devices, client.devices, strict=False)):
        judged = _judged(rail, one, answers, limits)
        probe = Probe(_name(rail), ())
        yield Trial(
            load=NAME,
            members=(server.name, client.name),
            outcome=judged.outcome,
            lane={server.name: theirs, client.name: ours},
            rail=rail,
            value=judged.value,
            detail=judged.detail,
            evidence=tuple(d for a in answers.values() if isinstance(a, Readings) for d in a.digests([probe])),
            remedy=judged.remedy,
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """How a flow ended."""

    outcome: TrialOutcome
    value: float | None = None
    detail: str = ""
    remedy: str = ""


def _judged(rail: int, one: Round, answers: Mapping[str, Answer], limits: Limits) -> Judged:
    lacking = without_gpu(one.members, rail, limits.methods.ib_write_bw)
    if lacking:
        detail = f"no GPU is known to be near the adapter of {', '.join(lacking)}"
        return Judged(TrialOutcome.UNMEASURED, detail=detail, remedy=_NO_GPU)
    results: dict[str, ProbeResult] = {}
    for member in one.members:
        answer = answers.get(member.name, f"{member.name} was not asked")
        if isinstance(answer, str):
            return Judged(TrialOutcome.UNMEASURED, detail=f"{member.name}: {answer}")
        result = answer.probes.get(_name(rail))
        if result is None or result.status is Status.MISSING:
            return Judged(TrialOutcome.UNMEASURED, detail=f"{member.name} has no {NAME}")
        results[member.name] = result
    return failure(results) or _rate(results[one.members[1].name].stdout, limits)


def failure(results: Mapping[str, ProbeResult]) -> Judged | None:
    """Return how the flow failed, by what its ends printed, by name; None where both ended well."""
    without = [name for name, result in results.items() if result.rc and _WITHOUT_CUDA.search(_output(result))]
    if without:
        detail = f"{NAME} of {' and '.join(without)} is built without CUDA"
        return Judged(TrialOutcome.UNMEASURED, detail=detail, remedy=_BUILD)
    failed = [f"{name}: {result.error_output}" for name, result in results.items() if result.rc not in (None, 0)]
    if failed:
        return Judged(TrialOutcome.FAILED, detail="; ".join(failed))
    hung = [name for name, result in results.items() if result.status is Status.TIMEOUT]
    if hung:
        return Judged(TrialOutcome.HUNG, detail=f"{' and '.join(hung)} got no further")
    return None


def _output(result: ProbeResult) -> str:
    return result.stderr + result.stdout


def _rate(stdout: str, limits: Limits) -> Judged:
    try:
        value = min(row.average for row in parse_bandwidth(stdout))
    except ParseError as error:
        return Judged(TrialOutcome.UNMEASURED, detail=str(error))
    return Judged(TrialOutcome.PASSED if value >= limits[IB_WRITE_BW_MIN].value else TrialOutcome.SLOW, value)


def _two(limits: Limits) -> GroupSizes:
    del limits
    return GroupSizes(2, 2)


def _job(members: tuple[Participant, ...], limits: Limits, lasts: Lasts, user: str) -> Round:
    server, client = members
    return pair(server, client, limits.methods.ib_write_bw, user, lasts.pair_seconds)


LOAD = GroupLoad(
    name=NAME,
    limit=IB_WRITE_BW_MIN,
    remedy="check the adapter's PCIe link, cable and error counters; reseat the cable, then the adapter",
    sizes=_two,
    job=_job,
    read=read,
    by_rail=True,
    in_pairs=True,
)
