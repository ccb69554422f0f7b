"""all_reduce_node: all GPUs of one node sum a large buffer over their NVLinks; no adapter takes part.

nccl-tests by mpirun, one rank a GPU, as over many nodes. Eight H100 with NVLink SHARP reach 482 GB/s at 16 GiB, without
it 365 to 368: a node that falls that far back has lost it (https://github.com/Azure/azurehpc-health-checks). It has
never run on a GPU here.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Area, Expected
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.loads import mpi
from clusterctl_burnin.loads.model import Participant, TrialOutcome
from clusterctl_burnin.loads.nccl_outcome import measured
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

ALL_REDUCE_NODE_BUSBW_MIN = LimitKey("all_reduce_node_busbw_min", "GB/s")

NAME = "all_reduce_node"
_HERE = Participant("node", "localhost", ())
_LOOK = "read nvidia-smi nvlink --status, the fabric manager's log and the kernel log; power the node off and on"
_INSTALL = "check that the role nccl_tests has run on the node, then run the burn-in again"


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    """Return the probe. nccl-tests knows no duration: `seconds` only lets it take as long."""
    method = limits.methods.all_reduce_node
    runs = mpi.mpirun((_HERE,), method.ranks, "root", limits.methods.all_reduce.mpi_interface, lambda _: _VARIABLES)
    argv = runs(mpi.all_reduce_perf(method.message_bytes, method.iterations))
    return (Probe(NAME, argv, timeout=float(max(method.timeout_seconds, seconds or 0))),)


_VARIABLES = {"NCCL_DEBUG": "WARN", "NCCL_IB_DISABLE": "1"}
_ANY = Probe(NAME, ("mpirun",))
"""By its name it is found, whatever it was run with."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if expected.sku.gpu_count < 2:
        yield not_applicable(NAME, f"the SKU has {expected.sku.gpu_count or 'no'} GPU, so nothing is summed")
        return
    result, limit = readings.result(_ANY), expected.limits[ALL_REDUCE_NODE_BUSBW_MIN]
    if result.rc != 0 and not mpi.started(result):
        raise UnmeasuredError(f"all_reduce_perf could not be started: {mpi.first_error(result)}", remedy=_INSTALL)
    if result.rc != 0:
        cause = f"the all-reduce over the node's GPUs failed: {mpi.first_error(result)}"
        yield Finding(
            check=NAME, verdict=Verdict.FAIL, code=Code.LOAD_FAILED, cause=cause, remedy=_LOOK, deterministic=False
        )
        return
    outcome, value, detail = measured(result.stdout, 1, expected.limits.methods.all_reduce_node.ranks, limit.value)
    if outcome is TrialOutcome.UNMEASURED:
        raise UnmeasuredError(detail, remedy="read the raw output in the evidence")
    quantity = None if value is None else limit.quantity(value)
    if outcome is TrialOutcome.PASSED:
        cause = "the GPUs' all-reduce over NVLink is fast enough"
        yield passed(NAME, cause, measured=quantity, expected=limit.at_least)
        return
    yield Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.LOAD_SLOW,
        cause="the GPUs' all-reduce over NVLink is slow" if outcome is TrialOutcome.SLOW else detail,
        measured=quantity,
        expected=limit.at_least,
        remedy=_LOOK,
        deterministic=False,
    )


LOAD = NodeLoad(
    NAME,
    _probes,
    _judge,
    limits=(ALL_REDUCE_NODE_BUSBW_MIN,),
    needs=frozenset({Area.GPU, Area.NVLINK}),
    about=frozenset({Area.NVLINK}),
)
