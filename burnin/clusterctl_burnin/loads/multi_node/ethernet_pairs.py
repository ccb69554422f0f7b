"""ethernet_pairs: two nodes send to each other by TCP (iperf3), one way and then back, over their management addresses.

No shipped suite has it: a site lists it in a suite of its own. The rate is judged as a share of the slower link's
speed, so that 100 GbE needs 90 Gb/s and 25 GbE 22.5 Gb/s. New pairs find the slow node, as they do for `ib_write_bw`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.ethernet_pair import NOT_INSTALLED, EthernetPair, Iperf, parse_ethernet_pair, received_gbps
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.loads.group_load import GroupLoad, GroupSizes, Lasts
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole, Round, Trial, TrialOutcome, Tried
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError, argv_for, script
from clusterctl_burnin.sweep import at_most

ETHERNET_PAIR_MIN = LimitKey(
    "ethernet_pair_min",
    "% of the link's speed",
    default=90,
    source="a host with 100 GbE is expected to show 90 Gb/s with several processes; frames of 9000 bytes carry 99 %",
)
NAME = "ethernet_pairs"
_MBIT_S_IN_GBIT_S = 1000
_INSTALL = "install iperf3 on the node (burnin_tools_packages of the role burnin_tools), then run the burn-in again"
_NO_INTERFACE = "see why ip addr shows no interface with the node's management address, then run the burn-in again"
_NO_SPEED = "read the speed of the node's interface (ethtool); virtual interfaces report none"
_CLEAR = "let the nodes reach each other at the TCP ports 5201 and following, and end other iperf3 servers"


def _job(members: tuple[Participant, ...], limits: Limits, lasts: Lasts, user: str) -> Round:
    """Return a round of two. It lasts as long as its method sets, whatever the suite sets for InfiniBand pairs."""
    del lasts
    server, client = members
    method, argv = limits.methods.ethernet_pairs, argv_for(user, privileged=False)
    limit = 2 * method.seconds + method.timeout_seconds

    def probe(member: Participant, *address: str) -> Probe:
        numbers = map(str, (method.processes, method.streams, method.seconds, limit))
        command = ("ethernet-pair", member.interface or "-", *numbers, *address)
        return Probe(NAME, command, timeout=float(limit + method.timeout_seconds), max_bytes=4 << 20)

    probes = {server.name: probe(server), client.name: probe(client, server.address)}
    commands = {
        server.name: Command(ProcessRole.SERVER, argv, script([probes[server.name]])),
        client.name: Command(ProcessRole.CLIENT, argv, script([probes[client.name]])),
    }
    return Round(NAME, (server, client), commands, at_most([probes[client.name]]))


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """Return the trial of the pair; `value` is its slower way."""
    evidence = tuple(e for a in answers.values() if isinstance(a, Readings) for e in a.evidence().values())
    names = tuple(member.name for member in one.members)
    try:
        outcome, value, detail = _measured(one.members, answers, limits)
        remedy = ""
    except UnmeasuredError as error:
        outcome, value, detail, remedy = TrialOutcome.UNMEASURED, None, error.message, error.remedy
    except ParseError as error:
        outcome, value, detail, remedy = TrialOutcome.UNMEASURED, None, str(error), ""
    digests = tuple(item.digest for item in evidence)
    return Tried((Trial(NAME, names, outcome, {}, None, value, detail, digests, remedy),), evidence)


def _measured(
    members: Sequence[Participant], answers: Mapping[str, Answer], limits: Limits
) -> tuple[TrialOutcome, float | None, str]:
    """Return how the pair did. Raises `UnmeasuredError` and `ParseError` where nothing shows it."""
    ends = {member.name: _end(member, answers.get(member.name, f"{member.name} was not asked")) for member in members}
    server, client = ends.values()
    runs = list(chain.from_iterable(client.ways))
    if any(run.code == NOT_INSTALLED for run in (*runs, *server.failed)):
        raise UnmeasuredError("iperf3 is not installed on both nodes", remedy=_INSTALL)
    bad = next((run for run in runs if run.failed), None)
    if bad is not None:
        return _failed(bad)
    if len(client.ways) != 2:
        raise UnmeasuredError(f"{members[1].name} measured {len(client.ways)} of 2 ways")
    there, back = (sum(received_gbps(run.output) for run in way) for way in client.ways)
    link = _link_gbps({name: end.speed for name, end in ends.items()})
    share = 100 * min(there, back) / link
    detail = f"{there:.2f} Gb/s to {members[0].name} and {back:.2f} Gb/s back, on a link of {link:g} Gb/s"
    return TrialOutcome.PASSED if share >= limits[ETHERNET_PAIR_MIN].value else TrialOutcome.SLOW, share, detail


def _link_gbps(speeds: Mapping[str, float | None]) -> float:
    """Return the speed of the slower end; raise `UnmeasuredError` where the kernel of a node reports none."""
    unknown = [name for name, speed in speeds.items() if speed is None]
    if unknown:
        raise UnmeasuredError(f"the kernel reports no link speed of {' and '.join(unknown)}", remedy=_NO_SPEED)
    return min(speed for speed in speeds.values() if speed is not None) / _MBIT_S_IN_GBIT_S


def _end(member: Participant, answer: Answer) -> EthernetPair:
    if isinstance(answer, str):
        raise UnmeasuredError(f"{member.name}: {answer}")
    if not member.interface:
        raise UnmeasuredError(f"{member.name}: no interface has its management address", remedy=_NO_INTERFACE)
    return parse_ethernet_pair(answer.text(Probe(NAME, ("ethernet-pair",))))


def _failed(run: Iperf) -> tuple[TrialOutcome, None, str]:
    """Return how a failed run counts: one that was killed hung, one that never met its server measured nothing."""
    if run.code == _TIMED_OUT:
        return TrialOutcome.HUNG, None, "iperf3 got no further"
    if any(word in run.error_output for word in _NOT_MET):
        raise UnmeasuredError(f"iperf3: {run.error_output}", remedy=_CLEAR)
    return TrialOutcome.FAILED, None, f"iperf3: {run.error_output}"


_TIMED_OUT = 124
_NOT_MET = ("unable to connect", "server is busy")
"""Messages of iperf3 (libiperf's iperf_error.c): a firewall or another server, no fault of the link."""


def _two(limits: Limits) -> GroupSizes:
    del limits
    return GroupSizes(2, 2)


LOAD = GroupLoad(
    name=NAME,
    limit=ETHERNET_PAIR_MIN,
    remedy="check the port's cable, transceiver, bond and switch port; compare ethtool -S with that of other nodes",
    sizes=_two,
    job=_job,
    read=read,
    in_pairs=True,
)
