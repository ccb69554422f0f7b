"""nccl_init: all GPUs of a node make NCCL's communicators and destroy them, again and again.

Jobs that start often fail there first: in the fabric manager, in peer mappings and in the driver's clean-up. Each start
is a short all-reduce of nccl-tests by mpirun, one rank a GPU, over the node's NVLinks. On a GPU it was
tried with one rank only.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.nvidia.nccl_init import FailedStart, parse_nccl_starts
from clusterctl_burnin.check import Area, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads import mpi
from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

NAME = "nccl_init"
_BYTES = 8
_HERE = Participant("node", "localhost", ())
_VARIABLES = {"NCCL_DEBUG": "WARN", "NCCL_IB_DISABLE": "1"}
_LOOK = "read the kernel log and the fabric manager's log at the time of the failure; reset the GPUs or reboot the node"
_INSTALL = "check that the role nccl_tests has run on the node, then run the burn-in again"
START = Metric("nccl_init_slowest", "s", Bad.HIGH, 0.5, 2.0, _LOOK)
_MARGIN_S = 60.0
_ANY = Probe(NAME, ("nccl-init",))
"""By its name it is found, whatever it was run with."""


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    """So many starts as the method sets; `seconds` only lets them take as long together."""
    method, ranks = limits.methods.nccl_init, limits.methods.all_reduce_node.ranks
    runs = mpi.mpirun((_HERE,), ranks, "root", limits.methods.all_reduce.mpi_interface, lambda _: _VARIABLES)
    argv = ("nccl-init", str(method.starts), str(method.start_seconds), *runs(mpi.all_reduce_perf(_BYTES, 1)))
    most = float(method.starts * method.start_seconds)
    return (Probe(NAME, argv, timeout=max(most, float(seconds or 0)) + _MARGIN_S),)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if expected.sku.gpu_count < 2:
        yield not_applicable(NAME, f"the SKU has {expected.sku.gpu_count or 'no'} GPU, so nothing communicates")
        return
    starts = parse_nccl_starts(readings.text(_ANY))
    if starts.failed is not None:
        if starts.failed.code is not None and mpi.NOT_STARTED.search(starts.failed.output):
            raise UnmeasuredError(f"all_reduce_perf could not be started: {_reason(starts.failed)}", remedy=_INSTALL)
        yield _failed(starts.failed, len(starts.seconds), starts.asked)
        return
    if len(starts.seconds) != starts.asked:
        raise UnmeasuredError(f"{len(starts.seconds)} of {starts.asked} starts were measured")
    cause = f"NCCL started and ended {starts.asked} times; the slowest start took {max(starts.seconds):.1f} s"
    yield passed(NAME, cause)


def _failed(failed: FailedStart, before: int, asked: int) -> Finding:
    hung = failed.code is None
    what = f"did not end within {failed.seconds:.0f} s" if hung else f"failed: {_reason(failed)}"
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.LOAD_HUNG if hung else Code.LOAD_FAILED,
        cause=f"start {before + 1} of {asked} of NCCL over the node's GPUs {what}",
        measured=Quantity(before, "starts"),
        expected=exactly(asked, "starts"),
        remedy=_LOOK,
        deterministic=False,
    )


def _reason(failed: FailedStart) -> str:
    warned = [line for line in failed.output.splitlines() if "NCCL WARN" in line]
    lines = warned or [line for line in failed.output.splitlines() if line.strip(" -*")]
    return lines[0].strip()[:200] if lines else f"exit code {failed.code}"


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    seconds = parse_nccl_starts(readings.text(_ANY)).seconds
    if seconds:
        yield Sample(node, START, max(seconds), population, "node", "")


LOAD = NodeLoad(
    NAME,
    _probes,
    _judge,
    (START,),
    _samples,
    needs=frozenset({Area.GPU, Area.NVLINK}),
    about=frozenset({Area.NVLINK}),
)
