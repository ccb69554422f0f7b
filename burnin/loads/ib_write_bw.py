"""ib_write_bw: two nodes write to each other's memory over every rail at once, each rail with a server and a client.

Both ends of a rail are the same rail's device. The client repeats its call until the server listens, so both may be
started together. Limits hold for the message size and count in the limits file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.burnin.limit import Limits, PairMethod
from clusterctl.burnin.loads.model import Answer, Command, Member, Outcome, Role, Round, Trial, Tried
from clusterctl.burnin.probe import Probe, ProbeResult, Readings, Status, argv_for, script
from clusterctl.burnin.sweep import at_most
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.perftest import parse_bandwidth

NAME = "ib_write_bw"
FIRST_PORT = 18515
_CONNECT_FAILED = "Couldn't connect to"


def pair(server: Member, client: Member, method: PairMethod, user: str, seconds: int | None = None) -> Round:
    """A round of two: what each runs, as `user`; for so many `seconds`, or as many messages as the method says.

    perftest's `-D` takes the place of `-n`, and both ends are to say the same
    (https://github.com/linux-rdma/perftest/blob/master/man/perftest.1).
    """
    rails = range(min(len(server.devices), len(client.devices)))
    servers = [_probe(server.devices[rail], rail, method, None, seconds) for rail in rails]
    clients = [_probe(client.devices[rail], rail, method, server.address, seconds) for rail in rails]
    argv = argv_for(user, privileged=False)
    commands = {
        server.name: Command(Role.SERVER, argv, script(servers, parallel=len(servers))),
        client.name: Command(Role.CLIENT, argv, script(clients, parallel=len(clients))),
    }
    return Round(NAME, (server, client), commands, at_most(servers, parallel=max(1, len(servers))))


def _probe(device: str, rail: int, method: PairMethod, server: str | None, seconds: int | None) -> Probe:
    argv = [NAME, "-d", device, "-p", str(FIRST_PORT + rail)]
    length = ["-n", str(method.iterations)] if seconds is None else ["-D", str(seconds)]
    argv += ["-s", str(method.message_bytes), *length, "-F", "--report_gbits"]
    if server is not None:
        argv.append(server)
    return Probe(
        _name(rail), tuple(argv), timeout=float(method.timeout_seconds + (seconds or 0)), retry_on=_CONNECT_FAILED
    )


def _name(rail: int) -> str:
    return f"{NAME}_rail{rail}"


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """One trial per rail; the client's table tells the bandwidth."""
    readings = [answer for answer in answers.values() if isinstance(answer, Readings)]
    evidence = tuple(e for r in readings for e in r.evidence().values())
    return Tried(tuple(_trials(one, answers, limits)), evidence)


def _trials(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Iterator[Trial]:
    server, client = one.members
    for bare in (m for m in one.members if not m.devices):
        yield Trial(NAME, (bare.name,), Outcome.UNMEASURED, {}, detail="it shows no InfiniBand device")
    for rail, (theirs, ours) in enumerate(zip(server.devices, client.devices, strict=False)):
        outcome, value, detail = _outcome(rail, server, client, answers, limits)
        probe = Probe(_name(rail), ())
        yield Trial(
            load=NAME,
            members=(server.name, client.name),
            outcome=outcome,
            lane={server.name: theirs, client.name: ours},
            rail=rail,
            value=value,
            detail=detail,
            evidence=tuple(d for a in answers.values() if isinstance(a, Readings) for d in a.digests([probe])),
        )


def _outcome(
    rail: int, server: Member, client: Member, answers: Mapping[str, Answer], limits: Limits
) -> tuple[Outcome, float | None, str]:
    results: dict[str, ProbeResult] = {}
    for member in (server, client):
        answer = answers.get(member.name, f"{member.name} was not asked")
        if isinstance(answer, str):
            return Outcome.UNMEASURED, None, f"{member.name}: {answer}"
        result = answer.probes.get(_name(rail))
        if result is None or result.status is Status.MISSING:
            return Outcome.UNMEASURED, None, f"{member.name} has no {NAME}"
        results[member.name] = result
    hung = [name for name, result in results.items() if result.status is Status.TIMEOUT]
    failed = [f"{name}: {result.complaint}" for name, result in results.items() if result.rc not in (None, 0)]
    if failed:
        return Outcome.FAILED, None, "; ".join(failed)
    if hung:
        return Outcome.HUNG, None, f"{' and '.join(hung)} got no further"
    return _rate(results[client.name].stdout, limits)


def _rate(stdout: str, limits: Limits) -> tuple[Outcome, float | None, str]:
    try:
        value = min(row.average for row in parse_bandwidth(stdout))
    except ParseError as error:
        return Outcome.UNMEASURED, None, str(error)
    return (Outcome.PASSED if value >= limits["ib_write_bw_min"].value else Outcome.SLOW), value, ""
