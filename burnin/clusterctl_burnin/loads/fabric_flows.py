"""ib_write_bw over a whole fabric: each flow has a server on its target and a client on its source.

A host runs all its ends at once. A target receives at most one flow on each adapter, so that the port of its rail is
free for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole
from clusterctl_burnin.loads.multi_node.ib_write_bw import Meeting, failure, without_gpu, write_probe
from clusterctl_burnin.probe import Probe, Readings, Status, argv_for, script
from clusterctl_burnin.sweep import at_most


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """One adapter of a host: `rail` is its place among the host's devices."""

    member: Participant
    rail: int

    def __str__(self) -> str:
        return f"{self.member.name} {self.member.devices[self.rail]}"


@dataclass(frozen=True, slots=True)
class AdapterFlow:
    """`source` writes to the memory of `target`."""

    source: FlowEnd
    target: FlowEnd


@dataclass(frozen=True, slots=True)
class FlowResult:
    """`gbps` in Gb/s (10**9 bits) by the client's own table; None where the flow did not run, for `cause`."""

    flow: AdapterFlow
    gbps: float | None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class HostCommand:
    """What a host runs, and for how many seconds at most."""

    command: Command
    timeout: float


def commands(flows: Iterable[AdapterFlow], method: PairMethod, seconds: int, user: str) -> Mapping[str, HostCommand]:
    """Return what each host of the flows runs, by name, so that each flow is sent for `seconds`."""
    probes: dict[str, list[Probe]] = defaultdict(list)
    for flow in flows:
        if any(_lacking(flow, method)):
            continue
        source, target = flow.source, flow.target
        serve, send = Meeting(target.rail), Meeting(target.rail, target.member.address)
        for name, end, meeting in ((_name("in", target), target, serve), (_name("out", source), source, send)):
            probes[end.member.name].append(write_probe(name, end.member, end.rail, method, meeting, seconds))
    return {
        name: HostCommand(
            Command(ProcessRole.HEAD, argv_for(user, privileged=False), script(own, parallel=len(own))),
            at_most(own, parallel=len(own)),
        )
        for name, own in probes.items()
    }


def result(flow: AdapterFlow, method: PairMethod, answers: Mapping[str, Answer]) -> FlowResult:
    """Return the result of a flow, by what its hosts answered."""
    lacking = list(_lacking(flow, method))
    if lacking:
        return FlowResult(flow, None, f"no GPU is known to be near the adapter of {', '.join(lacking)}")
    found = {}
    for end, probe in ((flow.source, _name("out", flow.source)), (flow.target, _name("in", flow.target))):
        answer = answers.get(end.member.name, "it was not reached")
        if not isinstance(answer, Readings):
            return FlowResult(flow, None, f"{end.member.name}: {answer}")
        ran = answer.probes.get(probe)
        if ran is None or ran.status is Status.MISSING:
            return FlowResult(flow, None, f"{end.member.name} has no ib_write_bw")
        found[str(end)] = ran
    failed = failure(found)
    if failed is not None:
        return FlowResult(flow, None, failed.detail)
    try:
        rows = parse_bandwidth(found[str(flow.source)].stdout)
    except ParseError as error:
        return FlowResult(flow, None, str(error))
    return FlowResult(flow, min(row.average for row in rows))


def _lacking(flow: AdapterFlow, method: PairMethod) -> Iterator[str]:
    """Yield the hosts of the flow without the GPU that the method wants at the adapter."""
    for end in (flow.source, flow.target):
        yield from without_gpu((end.member,), end.rail, method)


def _name(direction: str, end: FlowEnd) -> str:
    return f"ib_write_bw_{direction}_rail{end.rail}"
