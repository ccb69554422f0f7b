"""all_reduce: a group of nodes sums a large buffer together (nccl-tests' all_reduce_perf, started by mpirun on one).

One rank per GPU. mpirun logs in to the other members with the nodes' own keys. A time-out is the result HUNG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from clusterctl.burnin.limit import AllReduceMethod, Limits
from clusterctl.burnin.loads.model import Answer, Command, Member, Outcome, Role, Round, Trial, Tried
from clusterctl.burnin.probe import Probe, ProbeResult, Status, argv_for, script
from clusterctl.burnin.sweep import at_most
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.nccl_tests import CollectiveResult, parse_collective

NAME = "all_reduce"
_NOT_STARTED = re.compile(
    r"unable to (?:find|access|reliably start|launch)|No such file or directory|Host key verification"
)
_PLAIN = re.compile(r"^(?!-+$)(?=.*[a-z])", re.IGNORECASE)
_AS_ROOT = ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")


def group(members: Sequence[Member], method: AllReduceMethod, user: str) -> Round:
    """A round of all `members`; the first one leads."""
    head = members[0]
    probe = Probe(NAME, _argv(members, method, user), timeout=float(method.timeout_seconds))
    command = Command(Role.HEAD, argv_for(user, privileged=False), script([probe]))
    return Round(NAME, tuple(members), {head.name: command}, at_most([probe]))


def _argv(members: Sequence[Member], method: AllReduceMethod, user: str) -> tuple[str, ...]:
    hosts = ",".join(f"{member.address}:{method.ranks_per_node}" for member in members)
    ranks = str(len(members) * method.ranks_per_node)
    argv = [*(_AS_ROOT if user == "root" else ()), "mpirun", "-np", ranks, "--host", hosts]
    argv += ["--mca", "plm_rsh_args", "-o BatchMode=yes"]
    if method.mpi_interface:
        argv += ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", method.mpi_interface]
    else:
        argv += ["--bind-to", "numa"]
    size = str(method.message_bytes)
    argv += ["all_reduce_perf", "-b", size, "-e", size, "-f", "2", "-g", "1", "-c", "1", "-n", str(method.iterations)]
    return tuple(argv)


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """One trial for the whole group."""
    answer = answers.get(one.members[0].name, "it was not asked")
    names = tuple(member.name for member in one.members)
    if isinstance(answer, str):
        detail = f"{names[0]}, which led the group: {answer}"
        return Tried((Trial(NAME, names, Outcome.UNMEASURED, {}, detail=detail),), ())
    outcome, value, detail = _outcome(one, answer.probes.get(NAME), limits)
    digests = answer.digests([Probe(NAME, ())])
    trial = Trial(NAME, names, outcome, {}, value=value, detail=detail, evidence=digests)
    return Tried((trial,), tuple(answer.evidence().values()))


def _outcome(one: Round, result: ProbeResult | None, limits: Limits) -> tuple[Outcome, float | None, str]:
    if result is None or result.status is Status.MISSING:
        return Outcome.UNMEASURED, None, f"{one.members[0].name} has no mpirun"
    if result.status is Status.TIMEOUT:
        return Outcome.HUNG, None, f"no result after {result.seconds:.0f} s"
    if result.rc != 0:
        started = not _NOT_STARTED.search(result.stderr)
        return (Outcome.FAILED if started else Outcome.UNMEASURED), None, _complaint(result)
    try:
        found = parse_collective(result.stdout)
    except ParseError as error:
        return Outcome.UNMEASURED, None, str(error)
    return _rate(one, found, limits)


def _complaint(result: ProbeResult) -> str:
    """Mpirun tells the reason first and advice after it: its first line."""
    lines = (line.strip() for line in result.stderr.splitlines())
    return next((line[:200] for line in lines if _PLAIN.match(line)), result.complaint)


def _rate(one: Round, found: CollectiveResult, limits: Limits) -> tuple[Outcome, float | None, str]:
    ranks = len(one.members) * limits.all_reduce.ranks_per_node
    if found.ranks != ranks:
        return Outcome.UNMEASURED, None, f"{found.ranks} of {ranks} ranks took part"
    if found.out_of_bounds is None:
        return Outcome.UNMEASURED, None, "the run ended without its totals"
    if found.wrong or found.out_of_bounds:
        return Outcome.FAILED, None, f"{max(found.wrong, found.out_of_bounds)} values of the sum are wrong"
    value = min(row.busbw for row in found.rows)
    return (Outcome.PASSED if value >= limits["all_reduce_busbw_min"].value else Outcome.SLOW), value, ""
