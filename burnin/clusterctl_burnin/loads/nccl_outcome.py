"""The outcome of one run of all_reduce_perf over a group: outcome, bus bandwidth in GB/s, and the reason."""

from __future__ import annotations

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.nvidia.collectives import CollectiveResult, parse_collective
from clusterctl_burnin.loads import mpi
from clusterctl_burnin.loads.model import TrialOutcome
from clusterctl_burnin.probe import ProbeResult, Status

Judged = tuple[TrialOutcome, float | None, str]


def outcome(head: str, result: ProbeResult | None, nodes: int, ranks: int, floor: float) -> Judged:
    """Return the outcome. `head`: the leader; a run of fewer than `ranks` proves nothing. `floor` in GB/s."""
    if result is None or result.status is Status.MISSING:
        return TrialOutcome.UNMEASURED, None, f"{head} has no mpirun"
    if result.status is Status.TIMEOUT:
        return TrialOutcome.HUNG, None, f"no result after {result.seconds:.0f} s"
    if result.rc != 0:
        reason = _wrong(result.stdout) or mpi.first_error(result)
        return (TrialOutcome.FAILED if mpi.started(result) else TrialOutcome.UNMEASURED), None, reason
    return measured(result.stdout, nodes, ranks, floor)


def measured(stdout: str, nodes: int, ranks: int, floor: float) -> Judged:
    """Return the result of a run that came to its end; incomplete or unknown output is not measured."""
    try:
        found = parse_collective(stdout)
    except ParseError as error:
        return TrialOutcome.UNMEASURED, None, str(error)
    if found.ranks != ranks:
        return TrialOutcome.UNMEASURED, None, f"{found.ranks} of {ranks} ranks took part"
    if found.out_of_bounds is None:
        return TrialOutcome.UNMEASURED, None, "the run ended without its totals"
    if found.wrong or found.out_of_bounds:
        return TrialOutcome.FAILED, None, _wrong(stdout)
    return _rate(found, nodes, ranks, floor)


def _wrong(stdout: str) -> str:
    """Return what nccl-tests reports of wrong sums, with an exit code of its own; empty where no sum was wrong."""
    try:
        found = parse_collective(stdout)
    except ParseError:
        return ""
    wrong = max(found.wrong, found.out_of_bounds or 0)
    return f"{wrong} values of the sum are wrong" if wrong else ""


def _rate(found: CollectiveResult, nodes: int, ranks: int, floor: float) -> Judged:
    value = min(row.busbw for row in found.rows)
    return (TrialOutcome.PASSED if value >= floor else TrialOutcome.SLOW), value, _per_adapter(value, nodes, ranks)


def _per_adapter(busbw: float, nodes: int, ranks: int) -> str:
    """Return what compares with an adapter's rate. Over k nodes and n ranks at least busbw x (k - 1) / (n - 1) crosses
    each adapter each way: the bus bandwidth counts what stays inside the nodes, too (nccl-tests, doc/PERFORMANCE.md).
    """
    if nodes < 2 or ranks < 2:
        return ""
    return f"{busbw:.4g} GB/s, so that each adapter carries {busbw * (nodes - 1) / (ranks - 1):.3g} GB/s or more"
